// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/namespaceuid"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

func TestChecks(t *testing.T) {
	up := all("True", "Passed", "all checks passed")
	down := all("False", "FailedDiscoveryCheck", "bad status from https://10.0.0.1:8443: 503")
	custom := service(cli.JobSet, "True", "Local", "Local APIServices are always available")
	unstructured.RemoveNestedField(custom.Object, "spec", "service")
	const fine = "kube-apiserver reaches the server of v1alpha2.jobset.x-k8s.io, v1alpha1.batch.jobset-apiserver.io and v1.leaderworkerset.x-k8s.io"
	for name, tc := range map[string]struct {
		cluster cluster
		check   string
		status  Status
		message string
	}{
		"all groups are registered": {cluster{services: up}, "registered", OK, "v1alpha2.jobset.x-k8s.io, v1alpha1.batch.jobset-apiserver.io and v1.leaderworkerset.x-k8s.io are registered"},
		"no group is registered": {
			cluster{}, "registered", Fail,
			"there is no APIService v1alpha2.jobset.x-k8s.io, v1alpha1.batch.jobset-apiserver.io or v1.leaderworkerset.x-k8s.io; apply the manifests of jobset-apiserver",
		},
		"one group is registered": {
			cluster{services: up[:1]}, "registered", Warn, "v1alpha2.jobset.x-k8s.io is registered, but there is no APIService v1alpha1.batch.jobset-apiserver.io or v1.leaderworkerset.x-k8s.io",
		},
		"the sets are custom resources": {
			cluster{services: []runtime.Object{custom}}, "registered", Warn,
			"v1alpha2.jobset.x-k8s.io is served by kube-apiserver itself, from a CustomResourceDefinition, and not by jobset-apiserver",
		},
		"APIServices are forbidden": {
			cluster{services: up, refused: map[string]error{"apiservices": forbidden("apiservices")}}, "registered", Warn,
			"you have no permission to read APIServices; the ClusterRole jobset-doctor grants it",
		},
		"APIServices cannot be read": {
			cluster{services: up, refused: map[string]error{"apiservices": errors.New("broken")}}, "available", Fail, "APIServices could not be read: broken",
		},
		"the server is reached": {cluster{services: up}, "available", OK, fine},
		"the server is not reached": {
			cluster{services: []runtime.Object{up[0], down[1]}}, "available", Fail,
			"v1alpha1.batch.jobset-apiserver.io: Available is False (FailedDiscoveryCheck): bad status from https://10.0.0.1:8443: 503",
		},
		"the server is new": {
			cluster{services: []runtime.Object{service(cli.JobSet, "", "", "")}}, "available", Fail, "v1alpha2.jobset.x-k8s.io has no condition Available yet",
		},
		"the condition is older than the outage": {
			cluster{services: up, refused: map[string]error{"jobsets": apierrors.NewServiceUnavailable("away")}}, "available", Fail,
			"the condition Available of the APIServices is True, but JobSets are not served: away",
		},
		"the store is refused, and the condition is older": {
			cluster{services: up, objects: record(t, witness.Record{Refusal: refusal(20 * time.Second)}), refused: map[string]error{"jobsets": apierrors.NewServiceUnavailable("away")}}, "store", Fail,
			"jobset-apiserver refuses to serve its store (EmptyStore, confirmed by host-1 20s ago): The store is empty. Do this.",
		},
		"nothing could be available": {cluster{}, "available", Fail, "no APIService exists that could be available"},

		"nothing is refused": {
			cluster{services: up, objects: record(t, witness.Record{})}, "store", OK, "no server refuses to serve; the store is uuid-1, its floor is revision 70",
		},
		"the store is refused": {
			cluster{services: down, objects: record(t, witness.Record{Refusal: refusal(20 * time.Second)})}, "store", Fail,
			"jobset-apiserver refuses to serve its store (EmptyStore, confirmed by host-1 20s ago): The store is empty. Do this.",
		},
		"the refusal is old": {
			cluster{services: down, objects: record(t, witness.Record{Refusal: refusal(14 * time.Minute)})}, "store", Fail,
			"jobset-apiserver refuses to serve its store (EmptyStore, last confirmed by host-1 14m ago; it may be over, that server may not run, or its clock may be wrong): The store is empty. Do this.",
		},
		"another server serves": {
			cluster{services: up, objects: record(t, witness.Record{Refusal: refusal(20 * time.Second)})}, "store", Warn,
			"kube-apiserver reaches a server, but another one refuses. jobset-apiserver refuses to serve its store (EmptyStore, confirmed by host-1 20s ago): The store is empty. Do this.",
		},
		"a group is refused": {
			cluster{services: up, objects: record(t, witness.Record{Refusal: refusalOf("leaderworkerset.x-k8s.io")})}, "store", Fail,
			"jobset-apiserver refuses to serve leaderworkerset.x-k8s.io (EmptyStore, confirmed by host-1 20s ago): The store is empty. Do this.",
		},
		"a server without a witness": {
			cluster{services: up}, "store", Warn,
			"there is no record in ConfigMap kube-system/jobset-apiserver-store: the server runs with --store-witness=false or is older than the witness, or the record was deleted; apply the manifests, which have the ConfigMap, and restart the server",
		},
		"no server yet": {cluster{}, "store", Warn, "there is no record in ConfigMap kube-system/jobset-apiserver-store: no server has served here yet"},
		"the record is forbidden": {
			cluster{services: up, refused: map[string]error{"configmaps": forbidden("configmaps")}}, "store", Warn,
			"you have no permission to read ConfigMap kube-system/jobset-apiserver-store; the ClusterRole jobset-doctor grants it",
		},
		"the record is malformed": {
			cluster{services: up, objects: []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.Name}, Data: map[string]string{"floor": "1"}}}}, "acceptance", Fail,
			"ConfigMap kube-system/jobset-apiserver-store could not be read: data[uuid] of ConfigMap kube-system/jobset-apiserver-store: must not be empty",
		},

		"nothing is accepted": {cluster{objects: record(t, witness.Record{})}, "acceptance", OK, "no acceptance waits"},
		"an acceptance waits": {
			cluster{objects: record(t, witness.Record{Refusal: refusal(0), Accepted: &witness.Acceptance{NewUUID: "uuid-2"}})}, "acceptance", Warn,
			"store uuid-2 at revision 0 was accepted and waits for the server to adopt it, which takes seconds once the server runs",
		},
		"an acceptance of something else": {
			cluster{objects: record(t, witness.Record{Refusal: refusal(0), Accepted: &witness.Acceptance{NewUUID: "uuid-3", Revision: 7}})}, "acceptance", Warn,
			"store uuid-3 at revision 7 was accepted, but the server found uuid-2 at revision 0; run `store accept` with these values",
		},
		"an acceptance that is late": {
			cluster{objects: record(t, witness.Record{Accepted: &witness.Acceptance{NewUUID: "uuid-3", Revision: 7}})}, "acceptance", Warn,
			"store uuid-3 at revision 7 was accepted, but no server refuses to serve; the acceptance has no effect",
		},

		"no owner is lost":  {cluster{objects: record(t, witness.Record{})}, "lost-owners", OK, "no owners of Jobs are lost"},
		"the list is empty": {cluster{objects: append(record(t, witness.Record{Refusal: refusal(0)}), lost(0, false, "uuid-2"))}, "lost-owners", OK, "no owners of Jobs are lost"},
		"the list is of the past": {
			cluster{objects: append(record(t, witness.Record{}), lost(3, false, "uuid-2"))}, "lost-owners", OK,
			"no owners of Jobs are lost; ConfigMap kube-system/jobset-apiserver-lost-owners is about an earlier store",
		},
		"owners are lost": {
			cluster{objects: append(record(t, witness.Record{Refusal: refusal(0)}), lost(3, false, "uuid-2"))}, "lost-owners", Warn,
			"the refused store lacks 3 owners of Jobs, StatefulSets and other objects; if the right store is lost for good, `jobset-apiserver store release-orphans` keeps them",
		},
		"more owners are lost than are listed": {
			cluster{objects: append(record(t, witness.Record{Refusal: refusal(0)}), lost(1, true, "uuid-2"))}, "lost-owners", Warn,
			"the refused store lacks more than 1 owner of Jobs, StatefulSets and other objects; if the right store is lost for good, `jobset-apiserver store release-orphans` keeps them",
		},
		"the store was accepted without its owners": {
			cluster{objects: append(record(t, witness.Record{Restored: &witness.Restored{}}), lost(2, false, "uuid-1"))}, "lost-owners", Warn,
			"the store was accepted without 2 owners of Jobs, StatefulSets and other objects; `jobset-apiserver store release-orphans` keeps what still exists",
		},
		"the list is that of the manifests": {
			cluster{objects: append(record(t, witness.Record{}), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.LostOwnersName}})},
			"lost-owners", OK, "no owners of Jobs are lost",
		},
		"the list is malformed": {
			cluster{objects: append(record(t, witness.Record{}), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: witness.Namespace, Name: witness.LostOwnersName}, Data: map[string]string{"revision": "1"}})},
			"lost-owners", Fail, "ConfigMap kube-system/jobset-apiserver-lost-owners could not be read: data[newUUID] of ConfigMap kube-system/jobset-apiserver-lost-owners: must not be empty",
		},
		"the list is forbidden": {
			cluster{refused: map[string]error{"configmaps": forbidden("configmaps")}}, "lost-owners", Warn,
			"you have no permission to read ConfigMap kube-system/jobset-apiserver-lost-owners; the ClusterRole jobset-doctor grants it",
		},

		"nothing is held": {cluster{sets: heldSets(0, metav1.ConditionFalse)}, "held", OK, "nothing is held after a restore or a new namespace"},
		"a sequence is held": {
			cluster{sets: heldSets(0, metav1.ConditionTrue)}, "held", Warn, "held after a restore, until a user resumes or deletes them: sequentialjob team/etl",
		},
		"a set is older than its namespace": {
			cluster{sets: []runtime.Object{&leaderworkersetv1.LeaderWorkerSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "serve"},
				Status:     leaderworkersetv1.LeaderWorkerSetStatus{Conditions: []metav1.Condition{{Type: namespaceuid.Condition, Status: metav1.ConditionTrue}}},
			}}}, "held", Warn,
			"held because they are older than their namespace, until a user deletes them or confirms them as their condition NamespaceRecreated says: leaderworkerset team/serve",
		},
		"many are held": {
			cluster{sets: heldSets(7, metav1.ConditionFalse)}, "held", Warn,
			"held after a restore, until a user resumes or deletes them: jobset team/train-0, jobset team/train-1, jobset team/train-2, jobset team/train-3, jobset team/train-4 and 2 more",
		},
		"sets are forbidden": {
			cluster{refused: map[string]error{"jobsets": forbidden("jobsets")}}, "held", Warn, "you have no permission to read JobSets; the ClusterRole jobset-doctor grants it",
		},
		"the API of the sets does not answer": {
			cluster{refused: map[string]error{"jobsets": apierrors.NewServiceUnavailable("away")}}, "held", Warn, "JobSets cannot be listed while their API does not answer",
		},
		"sequences are switched off": {
			cluster{refused: map[string]error{"sequentialjobs": apierrors.NewNotFound(schema.GroupResource{}, "")}}, "held", OK, "nothing is held after a restore or a new namespace",
		},
		"sequences cannot be listed": {
			cluster{refused: map[string]error{"sequentialjobs": errors.New("broken")}}, "held", Fail, "SequentialJobs could not be read: broken",
		},

		"never restored": {cluster{objects: record(t, witness.Record{})}, "restore", OK, "the store has never been replaced"},
		"restored": {
			cluster{objects: record(t, witness.Record{Restored: &witness.Restored{Revision: 81, Time: metav1.NewTime(now.Add(-3 * time.Hour))}})}, "restore", OK,
			"the store was replaced 3h ago, at revision 81",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.cluster.find(t, tc.check)
			if got.status != tc.status || got.message != tc.message {
				t.Errorf("%s: %s\nwant %s: %s", got.status, got.message, tc.status, tc.message)
			}
		})
	}
}

func TestRender(t *testing.T) {
	report := &Report{Status: Fail, Checks: []Result{
		{Name: "registered", Status: OK, Message: "all is well"}, {Name: "store", Status: Fail, Message: "the store is empty and much is to be done", Fix: "kubectl do"},
		{Name: "etcd", Status: Skip, Message: "cannot be judged"}, {Name: "crd", Status: Warn, Message: "one is left", Fix: "kubectl delete"},
	}, FirstBroken: "store"}
	for name, tc := range map[string]struct {
		terminal cli.Terminal
		want     []string
	}{
		"a file": {cli.Terminal{}, []string{"[ok]   registered  all is well", "[fail] store       the store is empty and much is to be done",
			"[skip] etcd        cannot be judged", "[warn] crd         one is left", "", "First broken hop: store", "Fix:", "    kubectl do", "Fix of crd:", "    kubectl delete"}},
		"a narrow terminal": {cli.Terminal{Width: 44}, []string{
			"[ok]   registered  all is well", "[fail] store       the store is empty and", strings.Repeat(" ", 19) + "much is to be done",
			"[skip] etcd        cannot be judged", "[warn] crd         one is left", "", "First broken hop: store", "Fix:", "    kubectl do", "Fix of crd:", "    kubectl delete",
		}},
	} {
		var out bytes.Buffer
		if err := render(&out, tc.terminal, report); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
