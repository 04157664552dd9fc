"""Tests of the trace: schema, writer, reader, checkpoint."""
