// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/gates"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// gatesPath is the path of the document with the feature gates of the API server.
var gatesPath = path.Join("/apis", jobsetv1alpha2.SchemeGroupVersion.String(), "featuregates")

// gatesDocument is the document.
type gatesDocument struct {
	FeatureGates gates.Gates `json:"featureGates"`
}

// readGates reads the feature gates of the server. Where it does not say, they are off, which is the default of all
// that change Jobs, and there is a note.
func (p *previewer) readGates(ctx context.Context) (note string, err error) {
	var document gatesDocument
	err = p.document(ctx, gatesPath, &document)
	p.gates = document.FeatureGates
	p.placement, p.gates.ExclusivePlacement = p.gates.ExclusivePlacement,
		false // Jobs are shown as without placement, and their domains apart from them
	switch {
	case apierrors.IsNotFound(err):
		return "the server does not say which feature gates are on: all are taken to be off", nil
	case apierrors.IsForbidden(err):
		return "you may not read which feature gates are on, so all are taken to be off: " + err.Error(), nil
	case err != nil:
		return "", fmt.Errorf("reading the feature gates of the server: %w", err)
	}
	return "", nil
}
