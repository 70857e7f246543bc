// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfirm(t *testing.T) {
	for name, tc := range map[string]struct {
		typed   string
		want    bool
		wantOut string
	}{
		"yes":          {"y\n", true, ""},
		"the word":     {" Yes \n", true, ""},
		"no":           {"n\n", false, "Nothing was cancelled.\n"},
		"only return":  {"\n", false, "Nothing was cancelled.\n"},
		"end of input": {"", false, "Nothing was cancelled.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			got, err := confirm(strings.NewReader(tc.typed), &out, []string{"train", "eval"})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{fmt.Sprint(tc.want), "Cancel train, eval? Their active Jobs are deleted, the objects are kept. [y/N] " + tc.wantOut}
			if diff := cmp.Diff(want, []string{fmt.Sprint(got), out.String()}); diff != "" {
				t.Errorf("answer and text (-want +got):\n%s", diff)
			}
		})
	}
}
