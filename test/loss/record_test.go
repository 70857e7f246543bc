// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package loss

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestDecisions goes through what people do: they delete the record or the installation, start a second server, take
// over custom resources, restore a backup, and at last accept an empty store. Then comes the control.
func TestDecisions(t *testing.T) {
	tier.OnRequest(t, "stops and starts servers in a chain of cases")
	t.Parallel()
	s := newStage(t, second)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"record deleted by a person", s.recordIsDeleted},
		{"second server with an empty store", s.secondStore},
		{"sets taken over from a CustomResourceDefinition", s.takenOver},
		{"rolled-back store without its record", s.rolledBack},
		{"installation deleted", s.installationIsDeleted},
		{"restored store", s.restored},
		{"restored from a bucket", s.restoredFromBucket},
		{"empty store accepted", s.released},
		{"successor of a released Job", s.successor},
		{"without the witness", s.withoutWitness},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

// recordIsDeleted lets a person delete the record. The server takes the store for its own, because it knows the owners of all Jobs.
func (s *stage) recordIsDeleted(t *testing.T) {
	before, err := s.record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s.forget(t)
	s.serve(t, on(s.right))
	after, err := s.record(t.Context())
	if err != nil || after.UUID != before.UUID {
		t.Errorf("the record is %+v (%v), must have the UUID %s", after, err, before.UUID)
	}
	lost := s.watch(t, s.namespace, s.before, 5*time.Second, never)
	report(t, row{fault: "record deleted by a person", jobs: len(s.before.jobs), deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Errorf("lost: %.300v", lost)
	}
}

// secondStore starts another server with an empty store beside the one that serves. It never answers, and the first one goes on.
func (s *stage) secondStore(t *testing.T) {
	port := framework.FreePort(t)
	command := slices.DeleteFunc(s.commandFor(on(s.store(t, "second")), fmt.Sprintf("--secure-port=%d", port)), func(flag string) bool {
		return strings.HasPrefix(flag, "--secure-port=") && flag != fmt.Sprintf("--secure-port=%d", port)
	})
	begin := time.Now()
	second, err := framework.StartProcess(filepath.Join(s.Dir, "logs", "jobset-apiserver-2.log"), command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Kill)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: 10 * time.Second} //nolint:gosec // a server of the test
	code := func(path string) (int, error) {
		response, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d%s", port, path))
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return response.StatusCode, err
	}
	refusal := s.refuses(t, witness.ReasonEmptyStore, begin)
	for _, path := range []string{"/apis", "/apis/jobset.x-k8s.io", "/apis/jobset.x-k8s.io/v1alpha2/jobsets"} {
		if got, err := code(path); err != nil || got != http.StatusServiceUnavailable {
			t.Errorf("the second server answers %s with %d, %v", path, got, err)
		}
	}
	if got, err := code("/livez"); err != nil || got != http.StatusOK {
		t.Errorf("the second server answers /livez with %d, %v", got, err)
	}
	s.create(t, s.namespace, sets, sets+1) // the first one serves
	if status, message := s.doctor(t, "store"); status != "warn" || !strings.Contains(message, refusal.Message) {
		t.Errorf("the doctor finds %s: %s", status, message)
	}
	lost := s.watch(t, s.namespace, s.before, 5*time.Second, never)
	report(t, row{fault: "second server with an empty store", jobs: len(s.before.jobs), deleted: deletedJobs(lost), watched: time.Since(begin)})
	if len(lost) > 0 {
		t.Errorf("lost: %.300v", lost)
	}
	if err := s.JobSets.JobsetV1alpha2().JobSets(s.namespace).Delete(t.Context(), setName(sets), metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	// Later parts count the Jobs whose owners are gone.
	framework.Eventually(t, "the Jobs of the set are gone", func(ctx context.Context) error {
		list, err := s.Kube.BatchV1().Jobs(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: jobsetv1alpha2.JobSetNameKey + "=" + setName(sets)})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}

// doctor returns one of the checks of the plugin.
func (c *cluster) doctor(t *testing.T, name string) (status, message string) {
	t.Helper()
	out, _ := c.run(t, "kubectl-jobset", "doctor", "--kubeconfig="+c.Kubeconfig(), "-o", "json")
	var health struct {
		Checks []struct{ Name, Status, Message string }
	}
	if err := json.Unmarshal([]byte(out), &health); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, check := range health.Checks {
		if check.Name == name {
			return check.Status, check.Message
		}
	}
	t.Fatalf("there is no check %s: %s", name, out)
	return "", ""
}

// must runs the server program with a command.
func (c *cluster) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.run(t, "jobset-apiserver", args...)
	if err != nil {
		t.Fatalf("jobset-apiserver %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}
