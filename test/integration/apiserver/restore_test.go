// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// storeTool runs a store command that does not reach the main cluster.
func storeTool(t *testing.T, wantCode int, want string, args ...string) {
	t.Helper()
	process := framework.Run(t, plane.Binary, append([]string{"store"}, args...)...)
	code := process.Wait(t)
	if code != wantCode || !strings.Contains(process.Log(), want) {
		t.Fatalf("store %s ends with code %d, want %d and %q:\n%s", strings.Join(args, " "), code, wantCode, want, process.Log())
	}
}

// follower is an informer that runs all the time.
type follower struct {
	cache.SharedIndexInformer

	mu sync.Mutex
	// fell are resource versions of the informer that were lower than one before.
	fell []string
}

func follow(t *testing.T, e *env) *follower {
	t.Helper()
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return e.typed.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return e.typed.Watch(ctx, options)
		},
	}
	f := &follower{SharedIndexInformer: cache.NewSharedIndexInformer(lists, &jobsetv1alpha2.JobSet{}, 0, cache.Indexers{})}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.RunWithContext(ctx) })
	running.Go(func() { f.watchVersions(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return f
}

func (f *follower) watchVersions(ctx context.Context) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	highest := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		version := f.LastSyncResourceVersion()
		switch revision, err := strconv.ParseInt(version, 10, 64); {
		case version == "":
		case err != nil || revision < highest:
			f.mu.Lock()
			f.fell = append(f.fell, fmt.Sprintf("%s after %d", version, highest))
			f.mu.Unlock()
			return
		default:
			highest = revision
		}
	}
}

// await waits until the informer has the sets as the server has them, with what the annotation of each says.
func (f *follower) await(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	framework.Eventually(t, "the informer has "+strings.Join(want, " "), func(context.Context) error {
		var got []string
		for _, obj := range f.GetStore().List() {
			js := obj.(*jobsetv1alpha2.JobSet)
			got = append(got, js.Name+"="+js.Annotations["step"])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.fell) > 0 {
		t.Fatalf("the resource version of the informer fell: %v", f.fell)
	}
}

func (e *env) annotate(t *testing.T, name, step string) *jobsetv1alpha2.JobSet {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"step":%q}}}`, step)
	js, err := e.typed.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// startAgain starts a server at the address and with the certificate of one that ended.
func startAgain(t *testing.T, before *framework.Server, flags ...string) *framework.Server {
	t.Helper()
	server := plane.LaunchServer(t, append(flags, "--secure-port="+strconv.Itoa(before.Port), "--cert-dir="+before.CertDir)...)
	server.Port, server.CertDir = before.Port, before.CertDir
	return server
}

// TestRestore is the story of a store that is lost and restored from a backup behind kube-apiserver, under a client that watches.
func TestRestore(t *testing.T) {
	tier.Safety(t)
	newInstallation(t)
	dir := framework.ShortDir(t)
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "backup.db")
	flags := withWitness(framework.Embedded(data)...)
	server := plane.StartServer(t, flags...)
	plane.Aggregate(t, server)
	e := newEnv(t, server, plane.Config)
	informer := follow(t, e)
	for _, name := range []string{"kept", "changed", "deleted"} {
		e.create(t, jobSet(name))
		e.annotate(t, name, "before")
	}
	storeTool(t, 0, "verified.", "backup", file, "--data-dir="+data)
	storeTool(t, 0, "jobsets.jobset.x-k8s.io: 3 objects\n", "verify", file)
	old := e.get(t, "kept")

	e.annotate(t, "changed", "after")
	if err := e.typed.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	e.create(t, jobSet("created"))
	last := e.annotate(t, "created", "after")
	informer.await(t, "kept=before", "changed=after", "created=after")

	storeTool(t, 1, "is in use by another process: stop the server first", "restore", file, "--data-dir="+data)
	server.Stop(t)
	storeTool(t, 1, "already has data: set --move-existing", "restore", file, "--data-dir="+data)
	storeTool(t, 0, "The store continues after revision 10000", "restore", file, "--data-dir="+data, "--move-existing")
	server = startAgain(t, server, flags...)
	refusal := awaitRefusal(t, witness.ReasonRolledBack)
	checkRefused(t, server)
	admin, err := plane.Kubeconfig("store-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	expectStore(t, admin, []string{"accept", "--uuid=" + refusal.NewUUID, "--revision=" + strconv.FormatInt(refusal.Revision, 10)}, 0, " accepted\n")
	server.AwaitReady(t)

	informer.await(t, "kept=before", "changed=before", "deleted=before")
	e.checkRestored(t, old, last)
	e.annotate(t, "kept", "later")
	informer.await(t, "kept=later", "changed=before", "deleted=before")
}

// checkRestored compares with an object of the backup and with the last write that is lost.
func (e *env) checkRestored(t *testing.T, old, last *jobsetv1alpha2.JobSet) {
	t.Helper()
	framework.Eventually(t, "kube-apiserver forwards again", func(ctx context.Context) error {
		_, err := e.typed.Get(ctx, old.Name, metav1.GetOptions{})
		return err
	})
	if got := e.get(t, old.Name); got.ResourceVersion != old.ResourceVersion || got.UID != old.UID || got.Generation != old.Generation {
		t.Errorf("a set that was not changed has version %s and generation %d, had %s and %d", got.ResourceVersion, got.Generation, old.ResourceVersion, old.Generation)
	}
	list, err := e.typed.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if revision, err := strconv.ParseInt(list.ResourceVersion, 10, 64); err != nil || revision < etcd.RevisionBump {
		t.Errorf("a list has version %s, %v", list.ResourceVersion, err)
	}
	for what, version := range map[string]string{"of the backup": old.ResourceVersion, "that is lost": last.ResourceVersion} {
		w, err := e.typed.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err == nil {
			event := <-w.ResultChan()
			w.Stop()
			err = apierrors.FromObject(event.Object)
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			t.Errorf("a watch from a version %s: %v", what, err)
		}
	}
	written := e.annotate(t, "changed", "before")
	if revision, err := strconv.ParseInt(written.ResourceVersion, 10, 64); err != nil || revision > etcd.RevisionBump {
		t.Errorf("a write without change moves the version to %s, %v", written.ResourceVersion, err)
	}
}

// TestBackupBeforeAnotherVersion: what the version before has written is saved before this one serves.
func TestBackupBeforeAnotherVersion(t *testing.T) {
	tier.OnRequest(t, "a second case of restore")
	newInstallation(t)
	dir := framework.ShortDir(t)
	data, backups := filepath.Join(dir, "data"), filepath.Join(dir, "backups")
	flags := withWitness(framework.Embedded(data)...)
	server := plane.StartServer(t, flags...)
	e := newEnv(t, server, server.Config(t))
	e.create(t, jobSet("a"))
	server.Stop(t)
	rename(t, data)

	flags = append(flags, "--backup-interval=0", "--backup-dir="+backups)
	if err := os.WriteFile(backups, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := startAgain(t, server, flags...)
	if code := failed.Wait(t); code != 1 || !strings.Contains(failed.Log(), "error: --backup-dir: backing up the store that version v0.0.1 has written: ") {
		t.Errorf("exit code is %d:\n%s", code, failed.Log())
	}
	if err := os.Remove(backups); err != nil {
		t.Fatal(err)
	}
	server = startAgain(t, server, flags...)
	server.AwaitReady(t)
	files, err := filepath.Glob(filepath.Join(backups, "jobset-apiserver-*.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("backups are %v, %v", files, err)
	}
	storeTool(t, 0, "written by version v0.0.1, ", "verify", files[0])
	server.Stop(t)
	if log := server.Log(); !strings.Contains(log, "backing it up first") {
		t.Errorf("the log does not mention the backup:\n%s", log)
	}
	server = startAgain(t, server, flags...)
	server.AwaitReady(t)
	if again, err := filepath.Glob(filepath.Join(backups, "jobset-apiserver-*.db")); err != nil || len(again) != 1 {
		t.Errorf("after a restart, backups are %v, %v", again, err)
	}
}

// rename makes another version the one that has written a store.
func rename(t *testing.T, data string) {
	t.Helper()
	store, err := etcd.Open(etcd.Config{DataDir: data, QuotaBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	name := "/registry/jobset-apiserver/" + witness.KeyName
	response, err := client.Get(t.Context(), name)
	if err != nil || len(response.Kvs) != 1 {
		t.Fatal(errors.Join(err, fmt.Errorf("the key is %v", response)))
	}
	key, err := witness.DecodeKey(response.Kvs[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	key.Version = "v0.0.1"
	if _, err := client.Put(t.Context(), name, string(key.Encode())); err != nil {
		t.Fatal(err)
	}
}
