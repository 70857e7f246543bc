// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/migration"
)

// readImport reads the body of a request.
func (h *Handler) readImport(w http.ResponseWriter, req *http.Request) (*migration.Import, error) {
	// kubectl create --raw names no type, which means JSON, as in other groups.
	media := runtime.ContentTypeJSON
	if header := req.Header.Get("Content-Type"); header != "" {
		media, _, _ = mime.ParseMediaType(header)
	}
	if media != runtime.ContentTypeJSON {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, req.Method, resource(migration.Imports), "",
			"the body must be JSON (Content-Type: application/json)", 0, false)
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, req.Body, migration.MaxBytes))
	decoder.DisallowUnknownFields()
	wanted := &migration.Import{}
	err := decoder.Decode(wanted)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("nothing may follow the object")
		}
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("an import must have at most %d bytes: send fewer objects at once",
			large.Limit))
	case err != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be an %s of %s: %v", migration.KindImport, migration.GroupVersion, err))
	}
	return wanted, h.validate(wanted)
}

func (h *Handler) validate(wanted *migration.Import) error {
	var errs field.ErrorList
	if want := migration.GroupVersion.String(); wanted.APIVersion != want {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), wanted.APIVersion, []string{want}))
	}
	if wanted.Kind != migration.KindImport {
		errs = append(errs, field.NotSupported(field.NewPath("kind"), wanted.Kind, []string{migration.KindImport}))
	}
	spec := field.NewPath("spec")
	switch n := len(wanted.Spec.Objects) + len(wanted.Spec.Removed); {
	case n == 0:
		errs = append(errs, field.Required(spec.Child("objects"), "there must be at least one object, here or in spec.removed"))
	case n > migration.MaxObjects:
		errs = append(errs, field.Invalid(spec, n, fmt.Sprintf("objects and removed must have at most %d items together", migration.MaxObjects)))
	default:
		for i, gone := range wanted.Spec.Removed {
			errs = append(errs, h.validateRemoved(gone, spec.Child("removed").Index(i))...)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(migration.GroupVersion.WithKind(migration.KindImport).GroupKind(), "", errs)
}

func (h *Handler) validateRemoved(gone migration.Reference, path *field.Path) (errs field.ErrorList) {
	if resource := schema.ParseGroupResource(gone.Resource); !slices.Contains(h.kinds.Resources(), resource) {
		errs = append(errs, field.NotSupported(path.Child("resource"), gone.Resource, h.resources()))
	}
	if gone.Namespace == "" || len(content.IsPathSegmentName(gone.Namespace)) > 0 {
		errs = append(errs, field.Invalid(path.Child("namespace"), gone.Namespace, "must be the name of a namespace"))
	}
	if gone.Name == "" || len(content.IsPathSegmentName(gone.Name)) > 0 {
		errs = append(errs, field.Invalid(path.Child("name"), gone.Name, "must be the name of an object"))
	}
	if gone.UID == "" {
		errs = append(errs, field.Required(path.Child("uid"), "only the object with this UID is removed"))
	}
	return errs
}

// resources are the names of the resources that may be imported.
func (h *Handler) resources() (names []string) {
	for _, resource := range h.kinds.Resources() {
		names = append(names, resource.String())
	}
	return names
}
