// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package notes

import (
	"strings"
	"testing"
)

const changelog = `# Changelog

For users.

## Unreleased

Soon. [docs](docs/helm.md), [web](https://example.com/a), [part](#unreleased), [piece](docs/helm.md#values)

## v1.1.0 (2026-11-01)

Second.

### Upgrade

Do this.

## [v1.0.0] - 2026-10-01

First.

## v0.9.0

`

func TestExtract(t *testing.T) {
	soon := "Soon. [docs](https://example.com/x/docs/helm.md), [web](https://example.com/a), [part](#unreleased), [piece](https://example.com/x/docs/helm.md#values)\n"
	tests := map[string]struct{ version, text, heading string }{
		"the version has a date":       {"v1.1.0", "# v1.1.0\n\nSecond.\n\n### Upgrade\n\nDo this.\n", "v1.1.0"},
		"the version is in brackets":   {"v1.0.0", "# v1.0.0\n\nFirst.\n", "v1.0.0"},
		"the version has no heading":   {"v1.2.0-rc.1", "# v1.2.0-rc.1\n\n" + soon, Unreleased},
		"the version begins another":   {"v1.1.0-rc.1", "# v1.1.0-rc.1\n\n" + soon, Unreleased},
		"the version is a part of one": {"v1.1", "# v1.1\n\n" + soon, Unreleased},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			text, heading, err := Extract(changelog, test.version, "https://example.com/x/")
			if err != nil || text != test.text || heading != test.heading {
				t.Errorf("under %q (%v):\n%q, want under %q\n%q", heading, err, text, test.heading, test.text)
			}
		})
	}
	for title, test := range map[string]struct{ changelog, version string }{
		"nothing under the heading": {changelog, "v0.9.0"},
		"no heading at all":         {"# Changelog\n", "v1.0.0"},
	} {
		t.Run(title, func(t *testing.T) {
			want := `the changelog must have changes under the heading "## ` + test.version + `" or "## Unreleased"`
			if _, _, err := Extract(test.changelog, test.version, ""); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want %q", err, want)
			}
		})
	}
}
