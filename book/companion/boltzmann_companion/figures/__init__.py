"""The chapters' figures: functions of the rows that they show, in a module for each chapter."""
