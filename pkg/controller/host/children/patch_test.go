// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

// jobClient accepts each patch.
type jobClient struct {
	Client[*batchv1.Job]
	patches int
	refuses error
}

func (c *jobClient) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*batchv1.Job, error) {
	c.patches++
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(c.patches)}}, c.refuses
}

// remembersNothing is a Consistency.
type remembersNothing struct{ Consistency }

func (remembersNothing) Wrote(cache.ObjectName, string, string) {}

// TestPatchesThatOthersUndo makes the same change of a child each second, because another party takes it back each time.
func TestPatchesThatOthersUndo(t *testing.T) {
	suspend := func(value bool) []Operation { return []Operation{Set("/spec/suspend", value)} }
	const yields = "patching job ns/train-0: another party removed or changed %s of job train-0 3 times within a minute, each time after the controller had set it; " +
		"the API does not say who does, the audit log does; the controller sets it again at 1970-01-12T13:53:42Z"
	for name, c := range map[string]struct {
		steps   func(second int) []Operation
		change  func(owner *metav1.ObjectMeta, child *Ref, second int)
		refuses error
		want    int
		message string
	}{
		"one field": {steps: func(int) []Operation { return suspend(true) }, want: 5, message: fmt.Sprintf(yields, "spec.suspend")},
		"two fields": {
			steps: func(int) []Operation { return append(suspend(true), Set("/spec/parallelism", 3)) }, want: 5,
			message: fmt.Sprintf(yields, "one of spec.suspend and spec.parallelism"),
		},
		"many fields": {steps: func(int) []Operation {
			return []Operation{Set("/spec/a", 1), Set("/spec/b", 1), Set("/spec/c", 1), Set("/spec/d", 1), Set("/spec/e", 1)}
		}, want: 5, message: fmt.Sprintf(yields, "one of spec.a, spec.b, spec.c and 2 other fields")},
		"an annotation": {
			steps: func(int) []Operation { return SetKeys("/metadata/annotations", map[string]string{"a.io/b": "c"}) }, want: 5,
			message: fmt.Sprintf(yields, "metadata.annotations[a.io/b]"),
		},
		"a removed annotation": {
			steps: func(int) []Operation {
				return ChangeKeys("/metadata/annotations", map[string]string{"a.io/b": "c"}, map[string]string{})
			},
			want: 5, message: fmt.Sprintf(yields, "metadata.annotations[a.io/b]"),
		},
		"another value each time":      {steps: func(i int) []Operation { return []Operation{Set("/spec/parallelism", i)} }, want: 300},
		"another child each time":      {steps: func(int) []Operation { return suspend(true) }, change: func(_ *metav1.ObjectMeta, child *Ref, i int) { child.UID = types.UID(fmt.Sprint(i)) }, want: 300},
		"another generation each time": {steps: func(int) []Operation { return suspend(true) }, change: func(owner *metav1.ObjectMeta, _ *Ref, i int) { owner.Generation = int64(i) }, want: 300},
		"requests that fail":           {steps: func(int) []Operation { return suspend(true) }, refuses: errors.New("no answer"), want: 300},
	} {
		t.Run(name, func(t *testing.T) {
			now, client := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)), &jobClient{refuses: c.refuses}
			host := &Host{Consistency: remembersNothing{}, Clock: now}
			w := NewWriter(host, schema.GroupKind{Group: "batch", Kind: "Job"}, "jobs", "job", func(string) Client[*batchv1.Job] { return client })
			owner, child := &metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "uid-owner"}, Ref{Name: "train-0", UID: "uid-0"}
			var err error
			for i := range 300 {
				if c.change != nil {
					c.change(owner, &child, i)
				}
				_, err = w.Patch(t.Context(), owner, child, "7", c.steps(i))
				now.SetTime(now.Now().Add(time.Second))
			}
			if client.patches != c.want {
				t.Errorf("patched %d times in five minutes, want %d", client.patches, c.want)
			}
			if c.message != "" && (err == nil || err.Error() != c.message || !IsUndone(err)) {
				t.Errorf("got  %v\nwant %s", err, c.message)
			}
		})
	}
}
