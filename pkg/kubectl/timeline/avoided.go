// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// avoidedOf says which nodes the pods of an attempt keep off, or kept off; empty for none.
func avoidedOf(a *Attempt) string {
	if len(a.AvoidedNodes) == 0 {
		return ""
	}
	text := cli.Clean(helper.AvoidedInWords(a.AvoidedNodes))
	if a.ForgetTime != nil {
		text += "; forgotten, because there was no room elsewhere"
	}
	return text
}
