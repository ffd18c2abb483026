"""What every data set has spent: accounts, payment before noise, signatures."""
