// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/install"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
)

// Users see which steps have completed, and how many children there are, also while there are none. The server stores protobuf,
// which does not distinguish an empty list from an absent one.
func TestZerosOfTheStatusArePrinted(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	encoder := func(media string) runtime.Encoder {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
		if !ok {
			t.Fatalf("no serializer of %s", media)
		}
		return codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion)
	}
	stored, err := runtime.Encode(encoder(runtime.ContentTypeProtobuf), &batch.SequentialJob{})
	if err != nil {
		t.Fatal(err)
	}
	hub, err := runtime.Decode(codecs.UniversalDecoder(batch.SchemeGroupVersion), stored)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := runtime.Encode(encoder(runtime.ContentTypeJSON), hub)
	if err != nil {
		t.Fatal(err)
	}
	const want = `"status":{"state":{"active":0,"succeeded":0,"failed":0},"progress":{"completedIndices":[]}}`
	if !strings.Contains(string(printed), want) {
		t.Errorf("%s is missing in %s", want, printed)
	}
}
