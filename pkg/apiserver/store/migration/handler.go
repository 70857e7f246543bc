// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package migration serves the API of pkg/migration: imports of objects with their UIDs, and inventories of what the store
// has. It reads and writes etcd and not the storage of the groups, so that it works while the server refuses its store
// because it does not have these objects.
package migration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/importer"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

const versionPath = migration.Path + "/" + migration.Version

// Handler answers requests below the path of the group.
type Handler struct {
	kinds *importer.Kinds
	store *importer.Store
	// one bounds the memory of imports and inventories: others wait.
	one *semaphore.Weighted
}

// NewHandler returns one for these kinds and this store.
func NewHandler(kinds *importer.Kinds, store *importer.Store) *Handler {
	return &Handler{kinds: kinds, store: store, one: semaphore.NewWeighted(1)}
}

// Filter answers the requests of the group, and passes the others on.
func (h *Handler) Filter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !migration.Covers(req.URL.Path) {
			next.ServeHTTP(w, req)
			return
		}
		document, err := h.answer(w, req)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, document)
	})
}

// answer returns the document with which a request is answered.
func (h *Handler) answer(w http.ResponseWriter, req *http.Request) (any, error) {
	rest, versioned := strings.CutPrefix(req.URL.Path, versionPath)
	switch {
	case req.URL.Path == migration.Path && req.Method == http.MethodGet:
		return group(), nil
	case !versioned:
	case rest == "" && req.Method == http.MethodGet:
		return resources(), nil
	case rest == "/"+migration.Imports:
		if req.Method != http.MethodPost {
			return nil, apierrors.NewMethodNotSupported(resource(migration.Imports), strings.ToLower(req.Method))
		}
		return h.imported(w, req)
	default:
		if name, ok := strings.CutPrefix(rest, "/"+migration.Inventories+"/"); ok && name != "" && !strings.Contains(name, "/") {
			if req.Method != http.MethodGet {
				return nil, apierrors.NewMethodNotSupported(resource(migration.Inventories), strings.ToLower(req.Method))
			}
			return h.inventory(req, name)
		}
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, req.Method, schema.GroupResource{}, "", "the path is not served", 0,
		false)
}

func resource(name string) schema.GroupResource {
	return migration.GroupVersion.WithResource(name).GroupResource()
}

func group() *metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: migration.GroupVersion.String(), Version: migration.Version}
	return &metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: migration.Group,
		Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
}

func resources() *metav1.APIResourceList {
	return &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: migration.GroupVersion.String(),
		APIResources: []metav1.APIResource{
			{Name: migration.Imports, SingularName: "import", Kind: migration.KindImport, Verbs: metav1.Verbs{"create"}},
			{Name: migration.Inventories, SingularName: "inventory", Kind: migration.KindInventory, Verbs: metav1.Verbs{"get"}},
		},
	}
}

// begin waits until no other request is worked on.
func (h *Handler) begin(ctx context.Context) error {
	if err := h.one.Acquire(ctx, 1); err != nil {
		return apierrors.NewTimeoutError("another import or inventory has not ended in time", 0)
	}
	return nil
}

// imported imports the objects of a request.
func (h *Handler) imported(w http.ResponseWriter, req *http.Request) (*migration.Import, error) {
	ctx := req.Context()
	if err := h.begin(ctx); err != nil {
		return nil, err
	}
	defer h.one.Release(1)
	wanted, err := h.readImport(w, req)
	if err != nil {
		return nil, err
	}
	i := &importer.Import{
		Kinds: h.kinds, Store: h.store, DryRun: wanted.Spec.DryRun, DropUnknown: wanted.Spec.DropUnknownFields, Force: wanted.Spec.Force,
	}
	results := make([]migration.Result, 0, len(wanted.Spec.Objects))
	for _, object := range wanted.Spec.Objects {
		if err := ctx.Err(); err != nil {
			return nil, apierrors.NewTimeoutError("the request has ended before all objects were imported; repeat it", 0)
		}
		results = append(results, resultOf(i.One(ctx, object)))
	}
	for _, gone := range wanted.Spec.Removed {
		name := importer.Name{GroupResource: schema.ParseGroupResource(gone.Resource)}
		name.Namespace, name.Name = gone.Namespace, gone.Name
		results = append(results, resultOf(i.Remove(ctx, name, gone.UID)))
	}
	return &migration.Import{
		TypeMeta: wanted.TypeMeta,
		Spec: migration.ImportSpec{
			DryRun: wanted.Spec.DryRun, DropUnknownFields: wanted.Spec.DropUnknownFields, Force: wanted.Spec.Force,
		},
		Status: migration.ImportStatus{Results: results},
	}, nil
}

func resultOf(single importer.Single) migration.Result {
	result := migration.Result{Namespace: single.Name.Namespace, Name: single.Name.Name, UID: single.UID, Hash: single.Hash}
	if single.Name.Resource != "" {
		result.Resource = single.Name.GroupResource.String()
	}
	switch {
	case single.Err == nil:
		result.Verdict = verdicts[single.Verdict]
	case single.Rejected:
		result.Verdict = migration.Rejected
	case single.Conflicts():
		result.Verdict = migration.Conflict
	default:
		result.Verdict = migration.Failed
	}
	if single.Err != nil {
		result.Message = single.Err.Error()
	}
	return result
}

var verdicts = map[importer.Verdict]migration.Verdict{
	importer.Created: migration.Created, importer.Updated: migration.Updated, importer.Unchanged: migration.Unchanged,
	importer.Pruned: migration.Removed,
}

// inventory returns a page of what the store has of a resource.
func (h *Handler) inventory(req *http.Request, name string) (*migration.Inventory, error) {
	wanted := schema.ParseGroupResource(name)
	if !slices.Contains(h.kinds.Resources(), wanted) {
		return nil, apierrors.NewNotFound(resource(migration.Inventories), name)
	}
	after, err := decodeContinue(req.URL.Query().Get("continue"))
	if err != nil {
		return nil, apierrors.NewBadRequest("continue: must be the value of the page before, or empty for the first page")
	}
	if err := h.begin(req.Context()); err != nil {
		return nil, err
	}
	defer h.one.Release(1)
	page, more, err := (&importer.Import{Kinds: h.kinds, Store: h.store}).Page(req.Context(), wanted, after, migration.PageSize)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	out := &migration.Inventory{
		TypeMeta: metav1.TypeMeta{APIVersion: migration.GroupVersion.String(), Kind: migration.KindInventory},
		Items:    make([]migration.Item, 0, len(page)),
	}
	for _, stored := range page {
		out.Items = append(out.Items, migration.Item{Namespace: stored.Namespace, Name: stored.Name, UID: stored.UID, Hash: stored.Hash})
	}
	if more && len(page) > 0 {
		out.Continue = encodeContinue(page[len(page)-1].NamespacedName)
	}
	return out, nil
}

func encodeContinue(last types.NamespacedName) string {
	return base64.RawURLEncoding.EncodeToString([]byte(last.Namespace + "/" + last.Name))
}

func decodeContinue(text string) (types.NamespacedName, error) {
	if text == "" {
		return types.NamespacedName{}, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return types.NamespacedName{}, err
	}
	namespace, name, ok := strings.Cut(string(plain), "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, errors.New("not a name")
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func writeError(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, document any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(document) // the client went away
}
