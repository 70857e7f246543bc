// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/apiservice"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

const (
	jobSetsPath   = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
	sequencesPath = "/apis/batch.jobset-apiserver.io/v1alpha1/sequentialjobs"
)

// TestGroupIsLookedAtWhenItIsRouted replaces the APIService of a definition whose sets have Jobs. The server never says that a set does not
// exist, which would make the garbage collector delete its Jobs, and serves its other groups all the time.
func TestGroupIsLookedAtWhenItIsRouted(t *testing.T) {
	tier.Safety(t)
	newInstallation(t)
	m := &migrated{}
	m.define(t)
	createOrphans(t, 3)
	server := plane.StartServer(t, withWitness(framework.Embedded(framework.ShortDir(t))...)...)
	checkNotRouted(t, server)
	createService(t, server)
	replaceJobSets(t, server)

	set := fmt.Sprintf("/apis/jobset.x-k8s.io/v1alpha2/namespaces/%s/jobsets/%s", m.namespace, m.source[0].GetName())
	framework.Eventually(t, "the server refuses the group", func(context.Context) error {
		if out, err := plane.Kubectl(t, "get", "--raw", set); err != nil && strings.Contains(out+err.Error(), "NotFound") {
			t.Fatalf("a set that exists is not found: %s%v", out, err)
		}
		if code, body := framework.Get(t, server.Config(t), sequencesPath); code != http.StatusOK {
			t.Fatalf("another group answers %d: %s", code, body)
		}
		if r := record(t); r == nil || r.Refusal == nil {
			return errors.New("no refusal is published")
		}
		return nil
	})
	refusal := record(t).Refusal
	if refusal.Reason != witness.ReasonCustomResources || !slices.Equal(refusal.Groups, []string{"jobset.x-k8s.io"}) || refusal.JobsAtStake != 3 {
		t.Errorf("the refusal is %+v", refusal)
	}
	if code, body := framework.Get(t, server.Config(t), jobSetsPath); code != http.StatusServiceUnavailable || !strings.Contains(body, "(CustomResources)") {
		t.Errorf("the group answers %d: %s", code, body)
	}
	checkEvent(t, witness.ReasonCustomResources)
	changeRecord(t, func(r *witness.Record) {
		r.Accepted = &witness.Acceptance{NewUUID: refusal.NewUUID, Revision: refusal.Revision, AbandonJobs: true}
	})
	awaitJobSets(t, server)
	framework.Eventually(t, "the refusal ends, and the group is listed", func(context.Context) error {
		if r := record(t); r.Refusal != nil || r.Accepted != nil || r.Groups["jobset.x-k8s.io"] == "" {
			return fmt.Errorf("the record is %+v", r)
		}
		return nil
	})
}

// checkNotRouted wants a server to leave JobSets to kube-apiserver, and to serve its other groups.
func checkNotRouted(t *testing.T, server *framework.Server) {
	t.Helper()
	if code, body := framework.Get(t, server.Config(t), jobSetsPath); code != http.StatusServiceUnavailable || !strings.Contains(body, "(NotRouted)") {
		t.Errorf("a group that kube-apiserver serves answers %d: %s", code, body)
	}
	if code, body := framework.Get(t, server.Config(t), sequencesPath); code != http.StatusOK {
		t.Errorf("a group of the server answers %d: %s", code, body)
	}
	if r := record(t); !r.Adopted() || r.Refusal != nil {
		t.Errorf("the record is %+v", r)
	}
}

// createService creates the Service of a server.
func createService(t *testing.T, server *framework.Server) {
	t.Helper()
	service := apiservice.Service(server.Port)
	if _, err := plane.Kube.CoreV1().Services(service.Namespace).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := plane.Kube.CoreV1().Services(service.Namespace).Delete(context.WithoutCancel(t.Context()), service.Name, metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
}

// routeJobSets routes the group of a definition to a server, and waits until the server serves it.
func routeJobSets(t *testing.T, server *framework.Server) {
	t.Helper()
	replaceJobSets(t, server)
	awaitJobSets(t, server)
}

func awaitJobSets(t *testing.T, server *framework.Server) {
	t.Helper()
	framework.Eventually(t, "the group is served", func(context.Context) error {
		if code, body := framework.Get(t, server.Config(t), jobSetsPath); code != http.StatusOK {
			return fmt.Errorf("%d: %s", code, body)
		}
		return nil
	})
}

// replaceJobSets replaces the APIService of a definition, and gives the group back at the end.
func replaceJobSets(t *testing.T, server *framework.Server) {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(server.CertDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	services := plane.Dynamic.Resource(apiservice.Resource)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := services.Delete(ctx, apiservice.JobSets, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		framework.EventuallyNoProblem(t, func() string {
			if _, err := plane.Dynamic.Resource(jobsets).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return fmt.Sprintf("kube-apiserver does not serve the definition: %v", err)
			}
			return ""
		})
	})
	framework.Eventually(t, "the APIService is replaced", func(ctx context.Context) error {
		current, err := services.Get(ctx, apiservice.JobSets, metav1.GetOptions{})
		if err != nil {
			return err
		}
		next := apiservice.New(jobsets.GroupVersion(), server.Port, ca)
		next.SetResourceVersion(current.GetResourceVersion())
		_, err = services.Update(ctx, next, metav1.UpdateOptions{})
		return err
	})
}
