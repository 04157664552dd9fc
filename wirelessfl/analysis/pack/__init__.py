"""Archives of finished runs and studies, for whoever is to verify them on another machine."""
