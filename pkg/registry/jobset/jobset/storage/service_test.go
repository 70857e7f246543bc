// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

// warnings collects what a client is warned of.
type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// serving returns the objects of a server, and counts what is read of them.
func serving(t *testing.T, exists runtime.Object) (n provider.Neighbors, asked *int) {
	t.Helper()
	n, asked = provider.Neighbors{}, new(int)
	for _, resource := range []schema.GroupResource{jobset.Resource("jobsets"), leaderworkerset.Resource("leaderworkersets")} {
		n[resource] = func(_ context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
			*asked++
			if options.ResourceVersion != "0" {
				t.Errorf("%s %s is not read from the cache", resource, name)
			}
			_, isJobSet := exists.(*jobset.JobSet)
			if exists == nil || exists.(metav1.Object).GetName() != name || isJobSet != (resource.Resource == "jobsets") {
				return nil, apierrors.NewNotFound(resource, name)
			}
			return exists, nil
		}
	}
	return n, asked
}

// withService returns a JobSet whose Service has the name of its subdomain; of itself, if that is empty.
func withService(name, subdomain string, change ...func(*jobset.JobSet)) *jobset.JobSet {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	js.Spec.Network = &jobset.Network{EnableDNSHostnames: ptr.To(true), Subdomain: subdomain}
	for _, f := range change {
		f(js)
	}
	return js
}

func groups(policy leaderworkerset.SubdomainPolicy) *leaderworkerset.LeaderWorkerSet {
	set := &leaderworkerset.LeaderWorkerSet{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	set.Spec.NetworkConfig = &leaderworkerset.NetworkConfig{SubdomainPolicy: &policy}
	return set
}

// TestSharedServices creates JobSets beside others that need their Service.
func TestSharedServices(t *testing.T) {
	shared := func(owner, more string) []string {
		return []string{"metadata.name: the " + owner + ` "a" needs a Service of the same name, "a"; pods of the one that comes later have no DNS names` + more}
	}
	ofLeaderWorkerSet := shared("LeaderWorkerSet", "")
	controlled := func(js *jobset.JobSet) {
		js.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "etl"}, schema.GroupVersionKind{Kind: "SequentialJob"})}
	}
	for name, c := range map[string]struct {
		exists   runtime.Object
		creates  *jobset.JobSet
		failed   bool
		want     []string
		wantRead int
	}{
		"a LeaderWorkerSet of its name":                     {groups(leaderworkerset.SubdomainShared), withService("a", ""), false, ofLeaderWorkerSet, 1},
		"a LeaderWorkerSet of the name of the subdomain":    {groups(leaderworkerset.SubdomainShared), withService("b", "a"), false, ofLeaderWorkerSet, 2},
		"a LeaderWorkerSet with a Service for each group":   {groups(leaderworkerset.SubdomainUniquePerReplica), withService("a", ""), false, nil, 1},
		"a JobSet of the name of the subdomain":             {withService("a", ""), withService("b", "a"), false, shared("JobSet", "; use another spec.network.subdomain"), 2},
		"a JobSet of that name with another Service":        {withService("a", "x"), withService("b", "a"), false, nil, 2},
		"a JobSet of that name that is being deleted":       {withService("a", "", func(js *jobset.JobSet) { js.DeletionTimestamp = &metav1.Time{} }), withService("b", "a"), false, nil, 2},
		"a JobSet of that name that another program runs":   {withService("a", "", elsewhere), withService("b", "a"), false, nil, 2},
		"a JobSet that another program runs":                {groups(leaderworkerset.SubdomainShared), withService("a", "", elsewhere), false, nil, 0},
		"a JobSet without DNS names":                        {groups(leaderworkerset.SubdomainShared), withService("a", "", func(js *jobset.JobSet) { js.Spec.Network = nil }), false, nil, 0},
		"no other":                                          {nil, withService("a", ""), false, nil, 1},
		"a creation that fails":                             {groups(leaderworkerset.SubdomainShared), withService("a", ""), true, nil, 0},
		"a controller that creates the JobSet of an object": {groups(leaderworkerset.SubdomainShared), withService("a", "", controlled), false, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			others, asked := serving(t, c.exists)
			w := &warnings{}
			finish, err := warnOfServices(others)(warning.WithWarningRecorder(t.Context(), w), c.creates, nil)
			if err != nil {
				t.Fatal(err)
			}
			if *asked != 0 {
				t.Error("objects are read before it is known whether the object is valid")
			}
			finish(t.Context(), !c.failed)
			if diff := cmp.Diff(c.want, w.texts); diff != "" {
				t.Error("warnings (-want +got):\n" + diff)
			}
			if *asked != c.wantRead {
				t.Errorf("%d objects are read, want %d", *asked, c.wantRead)
			}
		})
	}
	if finish, err := warnOfServices(nil)(t.Context(), withService("a", "b"), nil); err != nil {
		t.Error(err)
	} else {
		finish(t.Context(), true)
	}
}

func elsewhere(js *jobset.JobSet) { js.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }
