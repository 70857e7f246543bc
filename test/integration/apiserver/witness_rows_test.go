// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// storedKey is the half of the witness in etcd.
type storedKey struct {
	client *clientv3.Client
	prefix string
}

func (k storedKey) name() string { return k.prefix + "/" + witness.KeyName }

// change changes the key as something does that is wrong; nil deletes it.
func (k storedKey) change(t *testing.T, change func(*witness.Key) *witness.Key) {
	t.Helper()
	response, err := k.client.Get(t.Context(), k.name())
	if err != nil || len(response.Kvs) != 1 {
		t.Fatalf("%v, %v", response, err)
	}
	key, err := witness.DecodeKey(response.Kvs[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	if next := change(&key); next != nil {
		_, err = k.client.Put(t.Context(), k.name(), string(next.Encode()))
	} else {
		_, err = k.client.Delete(t.Context(), k.name())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestWitness brings the halves apart in each way, while no server runs, and starts one.
func TestWitness(t *testing.T) {
	tier.Safety(t)
	etcd := plane.StartEtcd(t)
	for name, tc := range map[string]struct {
		change func(*testing.T, storedKey)
		reason witness.Reason // empty if the server serves
		want   []string
	}{
		"the halves agree":             {change: func(*testing.T, storedKey) {}},
		"the record was deleted":       {change: func(t *testing.T, _ storedKey) { deleteRecord(t) }},
		"the ConfigMap has no content": {change: func(t *testing.T, _ storedKey) { forgetStore(t) }},
		"the store is empty": {
			change: func(t *testing.T, k storedKey) { k.change(t, func(*witness.Key) *witness.Key { return nil }) },
			reason: witness.ReasonEmptyStore, want: []string{"is empty", "No object would be deleted", "store restore", "store accept --uuid="},
		},
		"the store is foreign": {
			change: func(t *testing.T, k storedKey) {
				k.change(t, func(key *witness.Key) *witness.Key { key.UUID = "foreign"; return key })
			},
			reason: witness.ReasonForeignStore, want: []string{"names the store foreign", "store accept --uuid="},
		},
		"the store is another cluster's": {
			change: func(t *testing.T, k storedKey) {
				k.change(t, func(key *witness.Key) *witness.Key { key.ClusterUID = "clone"; return key })
			},
			reason: witness.ReasonOtherCluster, want: []string{"has the UID clone", "is a clone"},
		},
		"another cluster's store, without a record": {
			change: func(t *testing.T, k storedKey) {
				forgetStore(t)
				k.change(t, func(key *witness.Key) *witness.Key { key.ClusterUID = "clone"; return key })
			},
			reason: witness.ReasonOtherCluster, want: []string{"has the UID clone"},
		},
		"the store is older": {
			change: func(t *testing.T, _ storedKey) { changeRecord(t, func(r *witness.Record) { r.Floor = 1 << 40 }) },
			reason: witness.ReasonRolledBack, want: []string{"has been at revision 1099511627776", "restored from a backup"},
		},
		"a newer version has written it": {
			change: func(t *testing.T, k storedKey) {
				k.change(t, func(key *witness.Key) *witness.Key { key.Format, key.Version = 99, "v9.9.9"; return key })
			},
			reason: witness.ReasonNewerFormat, want: []string{"v9.9.9", "format 99", "Run that version or a newer one"},
		},
		"Jobs have unknown owners": {
			change: func(t *testing.T, _ storedKey) { forgetStore(t); createOrphans(t, 11) },
			reason: witness.ReasonUnknownOwners, want: []string{"owners of 11 Jobs", "main cluster was restored", "store release-orphans"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			newInstallation(t)
			key := storedKey{etcd.Client(t), "/test/" + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", "")}
			flags := append(etcd.Flags, "--etcd-prefix="+key.prefix)
			plane.StartServer(t, withWitness(flags...)...).Stop(t)
			tc.change(t, key)
			if tc.reason == "" {
				plane.StartServer(t, withWitness(flags...)...)
				return
			}
			server := launchRefused(t, flags...)
			refusal := awaitRefusal(t, tc.reason)
			for _, text := range tc.want {
				if !strings.Contains(refusal.Message, text) {
					t.Errorf("%q is missing in: %s", text, refusal.Message)
				}
			}
			checkRefused(t, server)
			checkEvent(t, tc.reason)
			server.Stop(t)
		})
	}
}

func forgetStore(t *testing.T) {
	t.Helper()
	if err := framework.ForgetStore(t.Context(), plane.Kube); err != nil {
		t.Fatal(err)
	}
}

// deleteRecord deletes what the server may not create.
func deleteRecord(t *testing.T) {
	t.Helper()
	if err := plane.Kube.CoreV1().ConfigMaps(witness.Namespace).Delete(t.Context(), witness.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createOrphans creates Jobs of a JobSet that does not exist. No garbage collector runs here.
func createOrphans(t *testing.T, count int) {
	t.Helper()
	namespace, err := plane.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "orphans-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("job-", i), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: jobsets.GroupVersion().String(), Kind: "JobSet", Name: "lost", UID: "2c1c7b2e-0f0a-4a5b-9a3e-0d5d8a1b6c7f", Controller: ptr.To(true),
		}}}}
		job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "c"}}}
		if _, err := plane.Kube.BatchV1().Jobs(namespace.Name).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// checkEvent wants a warning about the record.
func checkEvent(t *testing.T, reason witness.Reason) {
	t.Helper()
	framework.Eventually(t, "the event is there", func(ctx context.Context) error {
		list, err := plane.Kube.EventsV1().Events(witness.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + witness.Name})
		if err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason == string(reason) && event.Type == corev1.EventTypeWarning {
				return nil
			}
		}
		return fmt.Errorf("%d events, none with reason %s", len(list.Items), reason)
	})
}
