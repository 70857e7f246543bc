// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

var (
	lostList     = witness.LostOwners{NewUUID: newUUID, Revision: 7, Owners: []types.UID{lostUID, "lost-2"}}
	refusedStore = witness.Record{UUID: oldUUID, Floor: 9, Refusal: refusal(0)}
	jobs         = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

func (m *mainCluster) fake() *metadatafake.FakeMetadataClient {
	return m.metadata.(*metadatafake.FakeMetadataClient)
}

// references returns the UIDs of the owners of an object.
func (m *mainCluster) references(resource schema.GroupVersionResource, name string) []types.UID {
	m.t.Helper()
	object, err := m.metadata.Resource(resource).Namespace("ns").Get(m.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	uids := []types.UID{}
	for _, owner := range object.OwnerReferences {
		uids = append(uids, owner.UID)
	}
	return uids
}

func TestReleaseOrphans(t *testing.T) {
	everything := func() *mainCluster {
		return newCluster(t,
			job("lost", jobSetOwner(lostUID)), job("known", jobSetOwner("known")), job("of-two", reference("v1", "ConfigMap", "other"), jobSetOwner(lostUID), jobSetOwner("lost-2")),
			job("of-another-kind", reference("batch/v1", "CronJob", lostUID)), job("of-a-sequence", reference("batch.jobset-apiserver.io/v1alpha1", "SequentialJob", "lost-2")),
			job("free"), object("v1", "Service", "lost", jobSetOwner(lostUID)), object("v1", "Service", "known", jobSetOwner("known")),
			object("v1", "PersistentVolumeClaim", "lost", jobSetOwner("lost-2")),
			object("apps/v1", "StatefulSet", "lost", reference("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", lostUID)), object("apps/v1", "StatefulSet", "of-others", reference("x/v1", "X", lostUID)),
			object("apps/v1", "ControllerRevision", "lost", jobSetOwner(lostUID)), object("scheduling.volcano.sh/v1beta1", "PodGroup", "lost", jobSetOwner(lostUID)), object("v1", "Pod", "lost", jobSetOwner(lostUID)),
		).with(refusedStore).losing(lostList)
	}
	for name, tc := range map[string]struct {
		flags []string
		want  string
		// kept is true if nothing changes.
		kept bool
	}{
		"for good": {nil, `statefulset/lost released in namespace ns
job/lost released in namespace ns
job/of-a-sequence released in namespace ns
job/of-two released in namespace ns
persistentvolumeclaim/lost released in namespace ns
service/lost released in namespace ns
controllerrevision/lost released in namespace ns
podgroup/lost released in namespace ns
1 StatefulSet, 3 Jobs, 1 PersistentVolumeClaim, 1 Service, 1 ControllerRevision, 1 PodGroup released
`, false},
		"on the client": {[]string{"--dry-run=client"}, `statefulset/lost released in namespace ns (dry run)
job/lost released in namespace ns (dry run)
job/of-a-sequence released in namespace ns (dry run)
job/of-two released in namespace ns (dry run)
persistentvolumeclaim/lost released in namespace ns (dry run)
service/lost released in namespace ns (dry run)
controllerrevision/lost released in namespace ns (dry run)
podgroup/lost released in namespace ns (dry run)
1 StatefulSet, 3 Jobs, 1 PersistentVolumeClaim, 1 Service, 1 ControllerRevision, 1 PodGroup released (dry run)
`, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := everything()
			got := m.run(append([]string{"release-orphans"}, tc.flags...)...)
			if diff := cmp.Diff(result{out: tc.want}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			after := map[string][]types.UID{
				"lost": m.references(jobs, "lost"), "of-two": m.references(jobs, "of-two"), "known": m.references(jobs, "known"),
				"of-another-kind": m.references(jobs, "of-another-kind"), "service": m.references(services, "lost"), "claim": m.references(claims, "lost"),
			}
			want := map[string][]types.UID{
				"lost": {}, "of-two": {"other"}, "known": {"known"}, "of-another-kind": {lostUID}, "service": {}, "claim": {},
			}
			if tc.kept {
				want["lost"], want["of-two"], want["service"], want["claim"] = []types.UID{lostUID}, []types.UID{"other", lostUID, "lost-2"}, []types.UID{lostUID}, []types.UID{"lost-2"}
			}
			if diff := cmp.Diff(want, after); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if tc.kept {
				return
			}
			if diff := cmp.Diff(result{out: "0 objects released\n"}, m.run("release-orphans"), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("the second time (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReleaseGoesOn: what cannot be released keeps nothing else, and ends with an error.
func TestReleaseGoesOn(t *testing.T) {
	deleting := job("deleting", jobSetOwner(lostUID))
	deleting.DeletionTimestamp = &metav1.Time{Time: testNow}
	m := newCluster(t, job("a", jobSetOwner(lostUID)), job("b-forbidden", jobSetOwner(lostUID)), job("c-gone", jobSetOwner(lostUID)), deleting, job("e", jobSetOwner(lostUID))).
		with(refusedStore).losing(lostList)
	m.fake().PrependReactor("patch", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch name := action.(clienttesting.PatchAction).GetName(); name {
		case "b-forbidden":
			return true, nil, apierrors.NewForbidden(jobs.GroupResource(), name, errors.New("no"))
		case "c-gone":
			return true, nil, apierrors.NewNotFound(jobs.GroupResource(), name)
		}
		return false, nil, nil
	})
	want := result{
		out: `job/a released in namespace ns
job/c-gone released in namespace ns
job/e released in namespace ns
3 Jobs released
`,
		errOut: `job/b-forbidden not released in namespace ns: jobs.batch "b-forbidden" is forbidden: no
job/deleting not released in namespace ns: it is being deleted, which cannot be undone
`,
		code: 1, message: "2 objects were not released: correct the causes above and run the command again",
	}
	if diff := cmp.Diff(want, m.run("release-orphans"), cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if got := m.references(jobs, "e"); len(got) != 0 {
		t.Errorf("job e is owned by %v", got)
	}
}

// TestReleaseOfObjectsThatChange: others change the list of owners, or replace the object, between the list and the patch.
func TestReleaseOfObjectsThatChange(t *testing.T) {
	for name, tc := range map[string]struct {
		now       *metav1.PartialObjectMetadata
		want      []types.UID
		wantPatch int
	}{
		"another owner comes first": {job("a", reference("v1", "ConfigMap", "other"), jobSetOwner(lostUID)), []types.UID{"other"}, 2},
		"the owner is gone":         {job("a", reference("v1", "ConfigMap", "other")), []types.UID{"other"}, 1},
		"it is another object":      {renewed(job("a", jobSetOwner(lostUID))), []types.UID{lostUID}, 1},
	} {
		m := newCluster(t, tc.now).with(refusedStore).losing(lostList)
		m.fake().PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &metav1.List{Items: []runtime.RawExtension{{Object: job("a", jobSetOwner(lostUID))}}}, nil
		})
		m.fake().PrependReactor("patch", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
			handled, object, err := clienttesting.ObjectReaction(m.fake().Tracker())(action)
			if err != nil { // a test of the patch; the tracker has a plain error for it
				err = apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
			}
			return handled, object, err
		})
		if got := m.run("release-orphans"); got.code != 0 || got.errOut != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if diff := cmp.Diff(tc.want, m.references(jobs, "a")); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", name, diff)
		}
		patches := 0
		for _, action := range m.fake().Actions() {
			if action.GetVerb() == "patch" {
				patches++
			}
		}
		if patches != tc.wantPatch {
			t.Errorf("%s: %d patches, want %d", name, patches, tc.wantPatch)
		}
	}
}

// TestServerTriesReleases speaks to a server, because the fake client forgets the options of a patch.
func TestServerTriesReleases(t *testing.T) {
	var patches []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		if req.Method == http.MethodPatch {
			patches = append(patches, req.URL.String())
			_ = json.NewEncoder(w).Encode(job("a"))
			return
		}
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		if strings.HasSuffix(req.URL.Path, "/jobs") {
			list.Items = append(list.Items, *job("a", jobSetOwner(lostUID)))
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	m := newCluster(t).with(refusedStore).losing(lostList)
	m.metadata = client
	const want = "job/a released in namespace ns (server dry run)\n1 Job released (server dry run)\n"
	if got := m.run("release-orphans", "--dry-run=server"); got.out != want || got.code != 0 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"/apis/batch/v1/namespaces/ns/jobs/a?dryRun=All"}, patches); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

func TestReleaseNeedsListOfThisRefusal(t *testing.T) {
	const other = "ConfigMap kube-system/jobset-apiserver-lost-owners is about another store, " + newUUID + " at revision 7: if a server refuses a store now, run the command again in a minute"
	adopted := witness.Record{UUID: newUUID, Floor: 9, Restored: &witness.Restored{Revision: 9}}
	more := lostList
	more.More = true
	for name, tc := range map[string]struct {
		cluster *mainCluster
		want    result
	}{
		"there is none": {newCluster(t).with(refusedStore), result{code: 1,
			message: "no owners are lost: ConfigMap kube-system/jobset-apiserver-lost-owners has none; a server that refuses a store writes them there"}},
		"the right store is back": {newCluster(t).with(witness.Record{UUID: oldUUID, Floor: 9}).losing(lostList), result{code: 1, message: other}},
		"there is no witness":     {newCluster(t).losing(lostList), result{code: 1, message: other}},
		"the store was accepted a moment ago": {newCluster(t, job("a", jobSetOwner(lostUID))).with(adopted).losing(lostList),
			result{out: "job/a released in namespace ns\n1 Job released\n"}},
		"it is not complete": {newCluster(t).with(refusedStore).losing(more), result{out: "0 objects released\n",
			errOut: "The list of lost owners is not complete: run the command again until it releases nothing, at least a minute later each time.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.cluster.run("release-orphans"), cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}
