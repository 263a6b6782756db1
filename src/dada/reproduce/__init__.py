"""Every table and figure of the paper as a command: our numbers beside the paper's, from data to page."""
