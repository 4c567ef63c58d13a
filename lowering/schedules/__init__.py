"""Schedules: functions that turn a definition into kernels."""
