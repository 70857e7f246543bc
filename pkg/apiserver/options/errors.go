// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"strings"
)

// flagError returns an error about the value of a flag, which says what is wrong and what to do.
func flagError(flag, format string, args ...any) error {
	return fmt.Errorf("--"+flag+": "+format, args...)
}

// wrapFlagError wraps an error that the value of a flag caused, and adds what to do. It returns nil for no error.
func wrapFlagError(flag string, err error, fix string) error {
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
