// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	archiveinstall "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/install"
	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// TestFieldSelectorsOfRuns: what the API promises is what stores can select by.
func TestFieldSelectorsOfRuns(t *testing.T) {
	scheme, kind := runtime.NewScheme(), archivev1alpha1.SchemeGroupVersion.WithKind("Run")
	archiveinstall.Install(scheme)
	for _, field := range []archive.Field{
		archive.FieldName, "metadata.namespace", archive.FieldState, archive.FieldUser, archive.FieldQueue, archive.FieldCause, archive.FieldNode,
		archive.FieldKind, archive.FieldObject, archive.FieldBeganAfter, archive.FieldBeganBefore, archive.FieldEndedAfter, archive.FieldEndedBefore,
	} {
		if label, value, err := scheme.ConvertFieldLabel(kind, string(field), "x"); err != nil || label != string(field) || value != "x" {
			t.Errorf("%s is converted to %s=%s: %v", field, label, value, err)
		}
	}
	_, _, err := scheme.ConvertFieldLabel(kind, "status.state", "x")
	if want := `field label "status.state" is not supported: use one of metadata.name, metadata.namespace, state, `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
	if len(archivev1alpha1.FieldLabels) != 13 {
		t.Errorf("%d fields are promised: add them to this test", len(archivev1alpha1.FieldLabels))
	}
}
