"""What the documentation is made with: examples that run, generated pages, the diagram."""
