"""What pictures show, whoever draws them: marks, and axes on which they lie."""
