// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeclaims

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// find returns the claims that exist, and how many of the wanted ones were looked up before something failed. It asks a
// bounded number of questions, whatever the JobSet says.
func find(ctx context.Context, claims corev1client.PersistentVolumeClaimInterface,
	wanted []wantedClaim) (map[string]*corev1.PersistentVolumeClaim, int, error) {
	if len(wanted) > maxGets {
		found, err := list(ctx, claims, wanted)
		if err != nil {
			return nil, 0, err
		}
		return found, len(wanted), nil
	}
	found := map[string]*corev1.PersistentVolumeClaim{}
	for i := range wanted {
		claim, err := claims.Get(ctx, wanted[i].name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			// The next lookup would most likely fail for the same reason.
			return found, i, err
		default:
			found[claim.Name] = claim
		}
	}
	return found, len(wanted), nil
}

// list goes through the claims of the namespace and keeps those that are wanted.
func list(ctx context.Context, claims corev1client.PersistentVolumeClaimInterface,
	wanted []wantedClaim) (map[string]*corev1.PersistentVolumeClaim, error) {
	names := make(map[string]bool, len(wanted))
	for i := range wanted {
		names[wanted[i].name] = true
	}
	found := map[string]*corev1.PersistentVolumeClaim{}
	options := metav1.ListOptions{Limit: pageSize}
	for range maxPages {
		page, err := claims.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if claim := &page.Items[i]; names[claim.Name] {
				found[claim.Name] = claim.DeepCopy() // the page itself can go
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return found, nil
		}
	}
	return nil, fmt.Errorf("the namespace has more than %d volume claims", pageSize*maxPages)
}
