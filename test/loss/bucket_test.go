// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/objectstorage"
)

// restoredFromBucket deletes the namespace of the installation and the data of the server. Installed again, with the newest backup of a bucket, which the
// pod in artifacts/restore/s3 would restore with this command, the server has all sets with their UIDs, and their pods did not notice.
func (s *stage) restoredFromBucket(t *testing.T) {
	uids := s.uids(t)
	credentials := s.store(t, "s3-credentials")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"} {
		if err := os.WriteFile(filepath.Join(credentials, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	endpoint := "--s3-endpoint=" + objectstorage.Start(t) // the pod has it in its environment
	address := "s3://" + objectstorage.Bucket + "/jobset-apiserver/"
	s.must(t, "store", "backup", address, "--data-dir="+s.right, "--s3-credentials-dir="+credentials, endpoint)

	s.deleteNamespace(t, apiservice.Namespace)
	s.stop(t)
	for _, group := range apiservice.Groups {
		if err := s.dynamic.Resource(apiservice.Resource).Delete(t.Context(), apiservice.Name(group), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.namespaceEnds(t, apiservice.Namespace)
	// The scripts install again, with new tokens, and wait until their server serves: it has the data, which is deleted after that.
	own := filepath.Join(s.Dir, "data")
	if s.right != own {
		if err := errors.Join(os.RemoveAll(own), os.Rename(s.right, own)); err != nil {
			t.Fatal(err)
		}
		s.right = own
	}
	if err := errors.Join(os.Remove(filepath.Join(s.Dir, "apiserver.kubeconfig")), os.Remove(filepath.Join(s.Dir, "controller.kubeconfig")),
		s.Script("stop", "controller"), s.Script("up"), s.Script("stop", "apiserver"), os.RemoveAll(s.right)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.start(t, on(s.right))
	s.refused(t, witness.ReasonEmptyStore, begin)
	lost := s.watch(t, s.namespace, s.before, 5*time.Second, never)

	s.stop(t)
	restored := s.store(t, "from-bucket")
	s.must(t, append(restoreCommand(t, map[string]string{
		"$(BACKUP_S3_URL)": address, "/etc/jobset-apiserver/s3": credentials, "/var/lib/jobset-apiserver/data": restored,
	}), endpoint)...)
	s.start(t, on(restored))
	refusal := s.refused(t, witness.ReasonRolledBack, begin)
	s.must(t, "store", "accept", "--kubeconfig="+s.Kubeconfig(), "--uuid="+refusal.NewUUID, fmt.Sprintf("--revision=%d", refusal.Revision))
	s.reached(t)
	s.right = restored

	for name, uid := range s.uids(t) {
		if uids[name] != uid {
			t.Errorf("the set %s has the UID %s, must have %s", name, uid, uids[name])
		}
		delete(uids, name)
	}
	if len(uids) > 0 {
		t.Errorf("%d sets are not there: %v", len(uids), uids)
	}
	lost = append(lost, s.watch(t, s.namespace, s.before, watched, never)...)
	report(t, row{fault: "namespace and volume deleted, restored from a bucket", jobs: len(s.before.jobs), deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Fatalf("%d Jobs and pods were lost: %.300v", len(lost), lost)
	}
	s.notRestarted(t)
	life := s.newLife(t)
	life.goOn(t)
}

// uids returns the UIDs of the sets.
func (s *stage) uids(t *testing.T) map[string]types.UID {
	t.Helper()
	list, err := s.JobSets.JobsetV1alpha2().JobSets(s.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for i := range list.Items {
		uids[list.Items[i].Name] = list.Items[i].UID
	}
	if len(uids) < sets {
		t.Fatalf("%d sets run, must be %d", len(uids), sets)
	}
	return uids
}

// notRestarted makes sure that no container of the pods has started again.
func (s *stage) notRestarted(t *testing.T) {
	t.Helper()
	now, err := s.children(t.Context(), s.namespace)
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range s.before.pods {
		for _, status := range now.pods[name].Status.ContainerStatuses {
			at := slices.IndexFunc(before.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == status.Name })
			if at < 0 || before.Status.ContainerStatuses[at].RestartCount != status.RestartCount {
				t.Errorf("the container %s of %s has restarted %d times", status.Name, name, status.RestartCount)
			}
		}
	}
}

// restoreCommand returns the command of the pod that restores from a bucket, with the directories of the test.
func restoreCommand(t *testing.T, replace map[string]string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "artifacts", "restore", "s3", "pod.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(content, &pod); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, arg := range pod.Spec.Containers[0].Args {
		for from, to := range replace {
			arg = strings.ReplaceAll(arg, from, to)
		}
		args = append(args, arg)
	}
	return args
}
