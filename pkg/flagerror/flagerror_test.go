// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package flagerror

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOneLine(t *testing.T) {
	err := Wrap("data-dir", errors.New("first\n\tsecond"), "do this")
	if diff := cmp.Diff("--data-dir: first second: do this", OneLine(err)); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
	if err := Wrap("data-dir", nil, "do this"); err != nil {
		t.Errorf("no error became %v", err)
	}
}
