int unused_metrics_suite;
