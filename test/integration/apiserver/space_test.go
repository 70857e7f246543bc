// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// smallQuota is small, and its reserve still larger than what is written between two commits of etcd, which measures its
// size then.
const smallQuota = 32 << 20

// bigJobSet is a set of about the given number of bytes.
func bigJobSet(name string, bytes int) *jobsetv1alpha2.JobSet {
	return jobSet(name, func(js *jobsetv1alpha2.JobSet) {
		container := &js.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0]
		container.Env = []corev1.EnvVar{{Name: "CONTENT", Value: strings.Repeat("x", bytes)}}
	})
}

// smallStore is the etcd of a server with smallQuota.
type smallStore struct {
	*env
	etcd     *clientv3.Client
	endpoint string
}

// maintain does what maintenance can do: it drops the history and gives back free pages. What is refused after that stays refused until
// objects are deleted. It returns the size of the database.
func (s *smallStore) maintain(t *testing.T) int64 {
	t.Helper()
	now, err := s.etcd.Get(t.Context(), "/", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.etcd.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		t.Fatal(err)
	}
	if _, err := s.etcd.Defragment(t.Context(), s.endpoint); err != nil {
		t.Fatal(err)
	}
	status, err := s.etcd.Status(t.Context(), s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return status.DbSize
}

// fill creates sets until one is refused for lack of space although nothing can be freed, and returns the number of sets and the refusal.
func (s *smallStore) fill(t *testing.T) (sets int, refusal error) {
	t.Helper()
	for settled := false; sets < 1000; {
		_, err := s.typed.Create(t.Context(), bigJobSet(fmt.Sprint("big-", sets), 100<<10), metav1.CreateOptions{})
		switch {
		case err == nil:
			sets++
			settled = false
		case !isInsufficient(err):
			t.Fatal(err)
		case settled:
			return sets, err
		default:
			s.maintain(t)
			settled = true
		}
	}
	t.Fatalf("no creation was refused")
	return 0, nil
}

func isInsufficient(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInsufficientStorage
}

// TestFullStoreIsCleanedWithKubectl fills the store twice: until its reserve is reached, in which all but creations and changes of
// spec goes on, and until etcd refuses writes. kubectl delete gets out of both.
func TestFullStoreIsCleanedWithKubectl(t *testing.T) {
	tier.OnRequest(t, "fills the store")
	data := filepath.Join(framework.ShortDir(t), "data")
	server := plane.StartServer(t, append(framework.Embedded(data), fmt.Sprint("--embedded-etcd-quota-bytes=", smallQuota))...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	s := &smallStore{env: e, endpoint: etcd.Endpoint(data)}
	var err error
	if s.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	defer s.etcd.Close()

	sets, refusal := s.fill(t)
	if want := "reserved for deletions and status: delete JobSets"; !strings.Contains(refusal.Error(), want) {
		t.Errorf("creation was refused with %v, not %q", refusal, want)
	}
	if sets < 200 {
		t.Errorf("%d sets of 100 KiB fill a quota of 32 MiB", sets)
	}
	checkSpaceLine(t, server, "[!]storage-space low")
	checkReserve(t, e)

	s.exhaust(t, 10, sets)
	checkSpaceLine(t, server, "[!]storage-space used up")
	err = e.deleteInForeground(t, 2)
	if !isInsufficient(err) || !strings.Contains(err.Error(), "delete JobSets in the background") {
		t.Errorf("a deletion in the foreground was answered with %v", err)
	}

	if out, err := plane.Kubectl(t, "delete", "jobsets", "--all", "--namespace="+e.namespace); err != nil {
		t.Fatalf("kubectl delete: %v: %s", err, out)
	}
	framework.Eventually(t, "there is space again", func(ctx context.Context) error {
		_, err := e.typed.Create(ctx, bigJobSet("after", 100<<10), metav1.CreateOptions{})
		return err
	})
	checkSpaceLine(t, server, "[+]storage-space ok")
}

func (e *env) deleteInForeground(t *testing.T, set int) error {
	t.Helper()
	return e.typed.Delete(t.Context(), fmt.Sprint("big-", set), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
}

// exhaust lets sets from one number to another grow by annotations, which the reserve does not refuse, until etcd refuses writes although
// nothing can be freed.
func (s *smallStore) exhaust(t *testing.T, from, to int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"content":%q}}}`, strings.Repeat("x", 200<<10))
	grow := func(ctx context.Context, set int) error {
		_, err := s.typed.Patch(ctx, fmt.Sprint("big-", set), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	for i := from; i < to; i++ {
		err := grow(t.Context(), i)
		if err != nil && !isInsufficient(err) {
			t.Fatal(err)
		}
		if err == nil {
			continue
		}
		// With more than a twentieth of the quota free, maintenance lets etcd accept writes again.
		if size := s.maintain(t); size <= smallQuota/20*19 {
			framework.Eventually(t, "etcd accepts writes again", func(ctx context.Context) error { return grow(ctx, i) })
		} else if err = grow(t.Context(), i); isInsufficient(err) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd still accepts writes")
}

// checkReserve does what goes on while creations are refused, and at last makes space without etcd having refused anything.
func checkReserve(t *testing.T, e *env) {
	t.Helper()
	js := e.get(t, "big-0")
	js.Spec.Suspend = ptr.To(true)
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{"large": strings.Repeat("x", 1000)}
	if _, err := e.typed.Update(t.Context(), js, metav1.UpdateOptions{}); !isInsufficient(err) {
		t.Errorf("a large change of spec was answered with %v", err)
	}
	suspend := []byte(`{"spec":{"suspend":true}}`)
	if _, err := e.typed.Patch(t.Context(), "big-0", types.MergePatchType, suspend, metav1.PatchOptions{}); err != nil {
		t.Errorf("suspending through spec: %v", err)
	}
	js = e.get(t, "big-0")
	js.Status.Restarts = 1
	js, err := e.typed.UpdateStatus(t.Context(), js, metav1.UpdateOptions{})
	if err != nil || js.Status.Restarts != 1 {
		t.Fatalf("status: %v", err)
	}
	js.Labels = map[string]string{"a": "b"}
	if _, err := e.typed.Update(t.Context(), js, metav1.UpdateOptions{}); err != nil {
		t.Errorf("labels: %v", err)
	}
	if err := e.deleteInForeground(t, 0); err != nil {
		t.Errorf("a deletion in the foreground: %v", err)
	}
	// No garbage collector runs here.
	if _, err := e.typed.Patch(t.Context(), "big-0", types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("the last finalizer: %v", err)
	}
	if _, err := e.typed.Get(t.Context(), "big-0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a deletion in the foreground: %v", err)
	}
}

// checkSpaceLine wants a line of /readyz?verbose, from a server that is ready.
func checkSpaceLine(t *testing.T, server *framework.Server, want string) {
	t.Helper()
	framework.Eventually(t, "/readyz says "+want, func(context.Context) error {
		code, body := server.Get(t, "/readyz?verbose")
		if code != http.StatusOK || !strings.HasPrefix(body, want) {
			return fmt.Errorf("%d: %s", code, body)
		}
		return nil
	})
	number := map[bool]string{true: "1", false: "0"}
	code, body := framework.Get(t, server.Config(t), "/metrics")
	for _, line := range []string{
		"jobset_apiserver_storage_exhausted " + number[strings.Contains(want, "used up")],
		"jobset_apiserver_storage_reserve_reached " + number[!strings.Contains(want, "ok")],
		fmt.Sprint("jobset_apiserver_storage_quota_bytes ", float64(smallQuota)),
	} {
		if code != http.StatusOK || !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("/metrics (%d) does not have %q", code, line)
		}
	}
}
