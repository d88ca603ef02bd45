"""What methods find and cost as the corpus grows to a million windows."""
