// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework"
	"github.com/jobset-apiserver/jobset-apiserver/test/framework/tier"
)

// TestImportIntoRefusedStore: an empty store is refused because of the Jobs of the sets that are to be taken over. They
// can be imported all the same, and then the server serves them as they were.
func TestImportIntoRefusedStore(t *testing.T) {
	tier.OnRequest(t, "starts a server on a refused store")
	kubeconfig, err := plane.Kubeconfig("operator", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	newInstallation(t)
	first := plane.StartServer(t, withWitness(framework.Embedded(framework.ShortDir(t))...)...)
	o := &operator{env: newEnv(t, first, first.Config(t)), kubeconfig: kubeconfig}
	want := map[string]*jobsetv1alpha2.JobSet{}
	list := &jobsetv1alpha2.JobSetList{TypeMeta: metav1.TypeMeta{APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSetList"}}
	for i := range late {
		set := o.create(t, jobSet(fmt.Sprintf("taken-%d", i)))
		o.createJob(t, set)
		set.TypeMeta = metav1.TypeMeta{APIVersion: jobsetv1alpha2.SchemeGroupVersion.String(), Kind: "JobSet"}
		list.Items, want[set.Name] = append(list.Items, *set), set
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sets.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	first.Stop(t)
	forgetStore(t)

	dir := framework.ShortDir(t)
	server := launchRefused(t, framework.Embedded(dir)...)
	if refusal := awaitRefusal(t, witness.ReasonUnknownOwners); refusal.JobsAtStake != late {
		t.Errorf("the refusal is %+v", refusal)
	}
	storeTool(t, 0, fmt.Sprintf("jobsets.jobset.x-k8s.io: %d created, 0 updated, 0 unchanged, 0 pruned\n", late),
		"import", "--file="+file, "--data-dir="+dir, "--kubeconfig="+kubeconfig)
	server.AwaitReady(t)
	framework.Eventually(t, "no refusal is left", func(context.Context) error {
		if r := record(t); !r.Adopted() || r.Refusal != nil {
			return errors.New("the store is not adopted")
		}
		return nil
	})
	served := clientset(t, server.Config(t)).JobSets(o.namespace)
	for name, set := range want {
		got, err := served.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got.ResourceVersion, got.TypeMeta = set.ResourceVersion, set.TypeMeta
		if diff := cmp.Diff(set, got); diff != "" {
			t.Errorf("%s (-source +served):\n%s", name, diff)
		}
	}
	storeTool(t, 0, "jobsets.jobset.x-k8s.io: 12 objects\n", "import", "--compare", "--file="+file, "--data-dir="+dir, "--kubeconfig="+kubeconfig)
}
