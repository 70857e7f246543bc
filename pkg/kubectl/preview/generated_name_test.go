// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// TestGeneratedNameIsNotGiven: each creation generates another name, so that none is shown as the name of the object.
func TestGeneratedNameIsNotGiven(t *testing.T) {
	for name, tc := range map[string]struct{ name, generate, want string }{
		"a name": {name: "train", generate: "x-", want: "train"}, "a generated name": {generate: "train-", want: "train-*"}, "neither": {},
	} {
		object := &unstructured.Unstructured{}
		object.SetName(tc.name)
		object.SetGenerateName(tc.generate)
		if got := objectOf(cli.JobSet, object).Name; got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
