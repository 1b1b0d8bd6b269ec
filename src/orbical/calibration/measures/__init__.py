"""Calibration errors and scores: functions of arrays that reduce over samples."""
