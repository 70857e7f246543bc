// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
)

// withoutGroups is the flag of a server that does not know LeaderWorkerSets.
const withoutGroups = "--runtime-config=leaderworkerset.x-k8s.io/v1=false"

// collect starts kube-controller-manager again. Its garbage collector knows no owner then, and asks for each. It has asked for all of them
// when it has deleted two objects of an owner that does not exist, one after the other: it asks in the order in which it comes to know them.
func (c *cluster) collect(t *testing.T, namespace string) {
	t.Helper()
	first := c.decoy(t, namespace)
	c.restartControllerManager(t)
	c.decoyGoes(t, namespace, first)
	c.decoyGoes(t, namespace, c.decoy(t, namespace))
}

// decoy creates an object whose owner does not exist, of a kind that kube-apiserver serves itself.
func (c *cluster) decoy(t *testing.T, namespace string) (name string) {
	t.Helper()
	created, err := c.Kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		GenerateName:    "decoy-",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: uuid.NewUUID()}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.Name
}

func (c *cluster) decoyGoes(t *testing.T, namespace, name string) {
	t.Helper()
	framework.Eventually(t, "the garbage collector deletes the decoy", func(ctx context.Context) error {
		_, err := c.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it exists"))
	})
}

// addition is a way in which a server that serves other groups gets one that a definition serves.
type addition struct {
	name string
	// add routes the group to the server.
	add func(*testing.T, *takeover)
}

func additions() []addition {
	replace := func(t *testing.T, o *takeover) { o.do(t, "kubectl replace -f", "APISERVICE", o.service) }
	return []addition{
		{"group added by its APIService", replace},
		{"group added by the flag, after its APIService", func(t *testing.T, o *takeover) {
			o.serve(t, on(o.right), withoutGroups)
			replace(t, o)
			o.start(t, on(o.right))
		}},
		{"group added by the flag, before its APIService", func(t *testing.T, o *takeover) {
			o.serve(t, on(o.right), withoutGroups)
			o.serve(t, on(o.right))
			replace(t, o)
		}},
		{"version with a new kind", func(t *testing.T, o *takeover) {
			o.serve(t, on(o.right), withoutGroups)
			o.withoutList(t)
			replace(t, o)
			o.start(t, on(o.right))
		}},
	}
}

// survives adds the group in one of the ways, while the garbage collector asks for the owners, and gives it back. The server refuses
// the group and serves the others.
func (o *takeover) survives(t *testing.T, a addition) {
	t.Helper()
	begin := time.Now()
	a.add(t, o)
	refusal := o.refuses(t, witness.ReasonCustomResources, begin)
	group := leaderworkersetv1.SchemeGroupVersion.Group
	if !slices.Equal(refusal.Groups, []string{group}) || lossIn(refusal, "StatefulSet") != takenSets {
		t.Errorf("%s: the refusal is %+v", a.name, refusal)
	}
	o.collect(t, o.namespace)
	if _, err := o.JobSets.JobsetV1alpha2().JobSets("").List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
		t.Errorf("%s: JobSets are not served: %v", a.name, err)
	}
	o.nothingLost(t, a.name, begin)
	o.do(t, "kubectl label apiservice")
	o.local(t)
	framework.Eventually(t, "the refusal ends", func(ctx context.Context) error {
		record, err := o.record(ctx)
		if err == nil && record.Refusal != nil {
			err = fmt.Errorf("the record is %+v", record)
		}
		return err
	})
	o.serveLocal(t)
}

// nothingLost reports which StatefulSets and Jobs were deleted, and fails the test if a child has changed.
func (o *takeover) nothingLost(t *testing.T, fault string, begin time.Time) {
	t.Helper()
	found, err1 := o.children(t.Context(), o.stage.namespace)
	now, err2 := o.versions(t.Context())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	lost := o.before.lost(found)
	r := row{fault: fault, jobs: len(o.before.jobs), deleted: deletedJobs(lost), watched: time.Since(begin)}
	r.statefulSets, r.deletedSets = deletedStatefulSets(o.was, now)
	report(t, r)
	if diff := cmp.Diff(o.was, now); diff != "" || len(lost) > 0 {
		t.Fatalf("%s: lost: %.300v; children of LeaderWorkerSets (-before +now):\n%s", fault, lost, diff)
	}
}

// withoutList makes both halves of the witness those that a version writes that does not know the list of groups. The server has ended
// then.
func (o *takeover) withoutList(t *testing.T) {
	t.Helper()
	o.stop(t)
	o.changeKey(t, o.right, func(key *witness.Key) { key.Groups = nil })
	cm, err := o.configMap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	record, err := witness.Read(cm)
	if err == nil {
		record.Groups = nil
		err = record.Write(cm)
	}
	if err == nil {
		_, err = o.Kube.CoreV1().ConfigMaps(witness.Namespace).Update(t.Context(), cm, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rolledBack serves a store from before LeaderWorkerSets were created, after the record was replaced by the empty one of the manifests. All
// else is in the store, so that few objects would be lost.
func (s *stage) rolledBack(t *testing.T) {
	s.stop(t)
	older := s.copied(t, s.right, "before-sets")
	s.serve(t, on(s.right))
	o := s.releasedSets(t)
	o.stage = s
	o.forget(t)
	begin := time.Now()
	o.start(t, on(older))
	refusal := o.refused(t, witness.ReasonUnknownOwners, begin)
	if lossIn(refusal, "StatefulSet") != takenSets || lossIn(refusal, "Job") != 0 {
		t.Errorf("the refusal is %+v", refusal)
	}
	o.collect(t, o.namespace)
	o.nothingLost(t, "rolled-back store, record replaced", begin)
	o.forget(t)
	o.serve(t, on(o.right))
	o.end(t)
}

// recordPID writes the process of kube-controller-manager where the scripts look for it.
func (c *cluster) recordPID(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.Dir, "pids", "kube-controller-manager.pid"), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
