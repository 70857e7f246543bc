// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// resourceNames are the words that kubectl takes for JobSets, without group and version.
var resourceNames = []string{"jobset", "jobsets", "js"}

// SetName returns the name of the one JobSet that a command was given as NAME, jobset/NAME or js/NAME.
func SetName(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", fmt.Errorf("NAME: give the name of a JobSet; `kubectl get jobsets` lists them")
	case len(args) > 1:
		return "", fmt.Errorf("NAME: must be one JobSet, not %d (%s)", len(args), strings.Join(args, ", "))
	}
	resource, name, slash := strings.Cut(args[0], "/")
	if !slash {
		resource, name = resourceNames[0], args[0]
	}
	if !IsResourceName(resource) {
		return "", fmt.Errorf("NAME: must be a JobSet, as NAME or jobset/NAME, not %q", args[0])
	}
	if name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("NAME: must be NAME or jobset/NAME, not %q", args[0])
	}
	return name, nil
}

// IsResourceName tells whether the word before the slash means JobSets: jobset, jobsets or js, also with the group, and with
// version and group.
func IsResourceName(word string) bool {
	short, qualified, dot := strings.Cut(word, ".")
	if !slices.Contains(resourceNames, short) {
		return false
	}
	return !dot || qualified == jobsetv1alpha2.GroupName || qualified == jobsetv1alpha2.SchemeGroupVersion.Version+"."+jobsetv1alpha2.GroupName
}
