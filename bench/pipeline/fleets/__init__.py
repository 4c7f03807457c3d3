"""Made-up fleets that forecasts are tuned on, and others that they are judged on."""
