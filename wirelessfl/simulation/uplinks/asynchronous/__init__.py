"""Asynchronous aggregation: clients train and upload at their own pace."""
