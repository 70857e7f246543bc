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
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
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

// fill creates sets until one is refused for lack of space although maintenance had time to free some, and returns the number of sets and
// the refusal.
func (e *env) fill(t *testing.T) (sets int, refusal error) {
	t.Helper()
	for ; sets < 1000; sets++ {
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := e.typed.Create(ctx, bigJobSet(fmt.Sprint("big-", sets), 100<<10), metav1.CreateOptions{})
			if isInsufficient(err) {
				refusal = err
				return false, nil
			}
			return true, err
		})
		if wait.Interrupted(err) {
			return sets, refusal
		}
		if err != nil {
			t.Fatal(err)
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
	flags := append(framework.Embedded(filepath.Join(framework.ShortDir(t), "data")), fmt.Sprint("--embedded-etcd-quota-bytes=", smallQuota))
	server := plane.StartServer(t, flags...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)

	sets, refusal := e.fill(t)
	if want := "reserved for deletions and status: delete JobSets"; !strings.Contains(refusal.Error(), want) {
		t.Errorf("creation was refused with %v, not %q", refusal, want)
	}
	if sets < 200 {
		t.Errorf("%d sets of 100 KiB fill a quota of 32 MiB", sets)
	}
	checkSpaceLine(t, server, "[!]storage-space low")
	checkReserve(t, e)

	grown := e.exhaust(t, 10, sets)
	checkSpaceLine(t, server, "[!]storage-space used up")
	err := e.deleteInForeground(t, 2)
	for i := 3; err == nil && i < 10; i++ {
		// On a slow machine, maintenance may find something to free a while later.
		grown = e.exhaust(t, grown, sets)
		err = e.deleteInForeground(t, i)
	}
	if !isInsufficient(err) || !strings.Contains(err.Error(), "delete JobSets in the background") {
		t.Errorf("a deletion in the foreground was answered with %v", err)
	}

	if out, err := plane.Kubectl(t, "delete", "jobsets", "--all", "--namespace="+e.namespace); err != nil {
		t.Fatalf("kubectl delete: %v: %s", err, out)
	}
	framework.Eventually(t, time.Minute, "there is space again", func(ctx context.Context) error {
		_, err := e.typed.Create(ctx, bigJobSet("after", 100<<10), metav1.CreateOptions{})
		return err
	})
	checkSpaceLine(t, server, "[+]storage-space ok")
}

func (e *env) deleteInForeground(t *testing.T, set int) error {
	t.Helper()
	return e.typed.Delete(t.Context(), fmt.Sprint("big-", set), metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)})
}

// exhaust lets sets from one number to another grow by annotations, which the reserve does not refuse, until etcd refuses
// writes and maintenance finds nothing to free. It returns the first set that did not grow.
func (e *env) exhaust(t *testing.T, from, to int) int {
	t.Helper()
	patch := []byte(fmt.Sprintf(`{"metadata":{"annotations":{"content":%q}}}`, strings.Repeat("x", 200<<10)))
	for i := from; i < to; i++ {
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := e.typed.Patch(ctx, fmt.Sprint("big-", i), types.MergePatchType, patch, metav1.PatchOptions{})
			if isInsufficient(err) {
				return false, nil
			}
			return true, err
		})
		if wait.Interrupted(err) {
			return i
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd still accepts writes")
	return 0
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
	framework.Eventually(t, 30*time.Second, "/readyz says "+want, func(context.Context) error {
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
