// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"
)

// flagError blames a flag: what is wrong with its value, and what to do.
func flagError(flag, format string, args ...any) error {
	return fmt.Errorf("--"+flag+": "+format, args...)
}

// blame returns an error of a library under the name of the flag whose value caused it, and nil for none.
func blame(flag string, err error, fix string) error {
	if err == nil {
		return nil
	}
	return flagError(flag, "%w: %s", err, fix)
}

// OneLine formats an error for a terminal or a container's termination message: one line, however many the libraries
// below used.
func OneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
