# Documentation and distribution, included by the Makefile.

.PHONY: docs examples site dist-check

docs: examples site  ## run every example of the documentation and build the site to build/docs

examples: $(DEV)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m docs.tools.examples

site: $(DEV)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@! grep -rlE '(src|href)="(https?:)?//[^"]*\.(js|css)' build/docs --include='*.html' || \
		{ echo "these pages fetch scripts or styles from elsewhere: the site must work offline" >&2; exit 1; }

dist-check: $(DEV)  ## wheel and sdist in clean environments, newest and oldest dependencies
	$(BIN)/python -m docs.tools.distribution
