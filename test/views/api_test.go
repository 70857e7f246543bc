// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset"
	disaggregatedsetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/disaggregatedset/v1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset"
	leaderworkersetv1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1"
	sequences "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/batch/sequentialjob/storage"
	roles "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/disaggregatedset/disaggregatedset/storage"
	jobsets "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/jobset/jobset/storage"
	groups "github.com/jobset-apiserver/jobset-apiserver/pkg/registry/leaderworkerset/leaderworkerset/storage"
)

// resource is a resource of the API, with the kind that it serves.
type resource struct {
	gvr  schema.GroupVersionResource
	kind string
}

func (r resource) path() string {
	if r.gvr.Group == "" {
		return "/api/" + r.gvr.Version
	}
	return "/apis/" + r.gvr.Group + "/" + r.gvr.Version
}

func at(gv schema.GroupVersion, name, kind string) resource {
	return resource{gv.WithResource(name), kind}
}

// resources are what the API serves. All else is not found.
var resources = []resource{
	at(jobsetv1alpha2.SchemeGroupVersion, "jobsets", "JobSet"), at(batchv1alpha1.SchemeGroupVersion, "sequentialjobs", "SequentialJob"),
	at(leaderworkersetv1.SchemeGroupVersion, "leaderworkersets", "LeaderWorkerSet"),
	at(disaggregatedsetv1.SchemeGroupVersion, "disaggregatedsets", "DisaggregatedSet"),
	at(batchv1.SchemeGroupVersion, "jobs", "Job"), at(appsv1.SchemeGroupVersion, "statefulsets", "StatefulSet"),
	at(corev1.SchemeGroupVersion, "pods", "Pod"), at(corev1.SchemeGroupVersion, "events", "Event"), at(corev1.SchemeGroupVersion, "nodes", "Node"),
	at(corev1.SchemeGroupVersion, "services", "Service"), at(corev1.SchemeGroupVersion, "resourcequotas", "ResourceQuota"),
	at(corev1.SchemeGroupVersion, "persistentvolumeclaims", "PersistentVolumeClaim"),
}

// api serves objects by resource, as kube-apiserver does for readers.
type api struct {
	objects map[string][]metav1.Object
}

func (a *api) add(name string, objects ...metav1.Object) {
	if a.objects == nil {
		a.objects = map[string][]metav1.Object{}
	}
	a.objects[name] = append(a.objects[name], objects...)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, served := range resources {
		rest, found := strings.CutPrefix(r.URL.Path, served.path()+"/")
		if !found {
			continue
		}
		if in, namespaced := strings.CutPrefix(rest, "namespaces/"); namespaced {
			_, rest, _ = strings.Cut(in, "/")
		}
		if name, object, one := strings.Cut(rest, "/"); name == served.gvr.Resource {
			a.answer(w, r, served, object, one)
			return
		}
	}
	reply(w, http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound})
}

// answer sends the object of the name, or a list.
func (a *api) answer(w http.ResponseWriter, r *http.Request, served resource, name string, one bool) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		reply(w, http.StatusBadRequest, nil)
		return
	}
	wanted, _ := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	items := []any{}
	for _, object := range a.objects[served.gvr.Resource] {
		if one && object.GetName() == name {
			reply(w, http.StatusOK, typed(object, served, r))
			return
		}
		if selector.Matches(labels.Set(object.GetLabels())) && (wanted == "" || strings.Contains(wanted, "=") || object.GetName() == wanted) {
			items = append(items, typed(object, served, r))
		}
	}
	if one {
		reply(w, http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 404,
			Reason: metav1.StatusReasonNotFound, Message: served.gvr.Resource + ` "` + name + `" not found`, Details: &metav1.StatusDetails{Name: name, Group: served.gvr.Group, Kind: served.gvr.Resource}})
		return
	}
	kind, version := served.kind+"List", served.gvr.GroupVersion().String()
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	reply(w, http.StatusOK, map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
}

// typed is the object with its kind, or the metadata alone.
func typed(object metav1.Object, served resource, r *http.Request) any {
	data, err := json.Marshal(object)
	out := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	out["apiVersion"], out["kind"] = served.gvr.GroupVersion().String(), served.kind
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": out["metadata"]}
	}
	return out
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// serve starts the API.
func (a *api) serve(t *testing.T) string {
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return server.URL
}

// wide returns the cells of the columns Phase and Reason of `kubectl get -o wide`. JobSets have their phase in a column of their own name,
// and SequentialJobs in Status.
func wide(t *testing.T, object runtime.Object) (phase, reason string) {
	t.Helper()
	var convertor rest.TableConvertor
	var hub runtime.Object
	var err error
	switch o := object.(type) {
	case *jobsetv1alpha2.JobSet:
		out := &jobset.JobSet{}
		convertor, hub, err = jobsets.NewTable(time.Now), out, jobsetv1alpha2.Convert_v1alpha2_JobSet_To_jobset_JobSet(o.DeepCopy(), out, nil)
	case *batchv1alpha1.SequentialJob:
		out := &batch.SequentialJob{}
		convertor, hub, err = sequences.NewTable(time.Now), out, batchv1alpha1.Convert_v1alpha1_SequentialJob_To_batch_SequentialJob(o.DeepCopy(), out, nil)
	case *leaderworkersetv1.LeaderWorkerSet:
		out := &leaderworkerset.LeaderWorkerSet{}
		convertor, hub, err = groups.NewTable(), out, leaderworkersetv1.Convert_v1_LeaderWorkerSet_To_leaderworkerset_LeaderWorkerSet(o.DeepCopy(), out, nil)
	case *disaggregatedsetv1.DisaggregatedSet:
		out := &disaggregatedset.DisaggregatedSet{}
		convertor, hub, err = roles.NewTable(), out, disaggregatedsetv1.Convert_v1_DisaggregatedSet_To_disaggregatedset_DisaggregatedSet(o.DeepCopy(), out, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	table, err := convertor.ConvertToTable(context.Background(), hub, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, column := range table.ColumnDefinitions {
		cell, _ := table.Rows[0].Cells[i].(string)
		switch column.Name {
		case "Phase", "Status":
			phase = cell
		case "Reason":
			reason = cell
		}
	}
	return phase, reason
}
