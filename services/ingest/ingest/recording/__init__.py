"""How a detection gets stored, sooner or later, and what makes it right afterwards."""
