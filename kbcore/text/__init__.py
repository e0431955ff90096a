"""What is wrong in files, as values with lines. It opens no file and knows nothing of what KB stores."""
