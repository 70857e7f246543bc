// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// notices are what a dry run says about objects, with their names.
type notices struct {
	mu    sync.Mutex
	names map[string][]string
}

// add says something about an object.
func (n *notices) add(text, namespace, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names == nil {
		n.names = map[string][]string{}
	}
	n.names[text] = append(n.names[text], namespace+"/"+name)
}

// shownNames is how many names a notice shows: the rest would hide the other notices.
const shownNames = 5

// print prints a line for each notice.
func (n *notices) print(out io.Writer) {
	for _, text := range slices.Sorted(maps.Keys(n.names)) {
		names := n.names[text]
		slices.Sort(names)
		more := ""
		if len(names) > shownNames {
			more = fmt.Sprintf(" and %d more", len(names)-shownNames)
		}
		fmt.Fprintf(out, "  %d %s: %s%s\n", len(names), text, strings.Join(names[:min(len(names), shownNames)], ", "), more)
	}
}

// of notices what users of an object will see after a move to the server. docs/compatibility.md has the reasons.
func (n *notices) of(o *unstructured.Unstructured) {
	add := func(text string) { n.add(text, o.GetNamespace(), o.GetName()) }
	for _, text := range managers(o.GetLabels(), o.GetAnnotations()) {
		add(text)
	}
	if o.GetDeletionTimestamp() != nil {
		add("are being deleted: they are moved, and wait for their finalizers as before")
	}
	if by, _, _ := unstructured.NestedString(o.Object, "spec", "managedBy"); by != "" && by != jobsetv1alpha2.JobSetControllerName {
		add("are managed by " + by + ": jobset-controller leaves them alone")
	}
	if o.GetAnnotations()[jobsetv1alpha2.ExclusiveKey] != "" {
		add("place Jobs exclusively: pods that exist stay; jobset-controller, and no webhook for pods, chooses where later Jobs run")
	}
	if restarts, _, _ := unstructured.NestedInt64(o.Object, "status", "restarts"); restarts > 0 {
		add("have restarted: status.restarts goes on counting, and status.attempts has only what happens after the move")
	}
	strategy, _, _ := unstructured.NestedString(o.Object, "spec", "failurePolicy", "restartStrategy")
	if strategy == string(jobsetv1alpha2.RestartStrategyInPlaceRestart) {
		add("restart in place: this goes on only with the feature gate InPlaceRestart of both programs")
	}
}
