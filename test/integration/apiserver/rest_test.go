// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
	"github.com/jobset-apiserver/jobset-apiserver/test/integration/framework"
)

func TestThroughAggregation(t *testing.T) {
	s := plane.StartServer(t, framework.Embedded(framework.ShortDir(t))...)
	plane.Aggregate(t, s)
	client, err := versioned.NewForConfig(plane.Config)
	if err != nil { t.Fatal(err) }
	js := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	got, err := client.JobsetV1alpha2().JobSets("default").Create(t.Context(), js, metav1.CreateOptions{})
	if err != nil { t.Fatal(err) }
	t.Logf("%+v", got)
	list, err := client.JobsetV1alpha2().JobSets("").List(t.Context(), metav1.ListOptions{})
	if err != nil { t.Fatal(err) }
	t.Logf("%+v", list)
	s.Stop(t)
}
