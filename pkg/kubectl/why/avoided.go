// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"time"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// avoidedNodes says which nodes the pods of the attempt that runs keep off.
func avoidedNodes(js *jobsetv1alpha2.JobSet, now time.Time) []string {
	if js == nil {
		return nil
	}
	a := helper.RunningAttempt(&js.Status)
	if a == nil || len(a.AvoidedNodes) == 0 {
		return nil
	}
	if a.ForgetTime != nil {
		return []string{fmt.Sprintf("pods of attempt %d may run again on nodes that failed earlier, because there was no room elsewhere: %s",
			a.Number, cli.Clean(helper.AvoidedInWords(a.AvoidedNodes)))}
	}
	var left []jobsetv1alpha2.AvoidedNode
	for _, node := range a.AvoidedNodes {
		if node.Until.After(now) {
			left = append(left, node)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("pods of attempt %d keep off %s", a.Number, cli.Clean(helper.AvoidedInWords(left)))}
}
