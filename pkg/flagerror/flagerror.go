// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flagerror makes errors about the values of flags.
package flagerror

import (
	"fmt"
	"strings"
)

// New returns an error about the value of a flag, which says what is wrong and what to do.
func New(flag, format string, args ...any) error {
	return fmt.Errorf("--"+flag+": "+format, args...)
}

// Wrap wraps an error that the value of a flag caused, and adds what to do. It returns nil for no error.
func Wrap(flag string, err error, fix string) error {
	if err == nil {
		return nil
	}
	return New(flag, "%w: %s", err, fix)
}

// OneLine formats an error for a terminal or the termination message of a container: one line, however many the libraries
// below used.
func OneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
