// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

const (
	// version is the version of the form of values.
	version = 1
	// maxValueBytes leaves room below what etcd takes in one request, 1.5 MiB.
	maxValueBytes = 1 << 20
	// maxRunBytes bounds the memory that a value can take once it is decompressed.
	maxRunBytes = 16 << 20
	// maxHeaderBytes bounds the first line of a value.
	maxHeaderBytes = 4 << 10
)

// Entry is a run that the archive may not have yet.
type Entry struct {
	// Resource is the resource of the object that ran, and ObjectKey is the key of the object in the store of the resource.
	Resource  schema.GroupResource
	ObjectKey string
	// Removal means that the run ends with the removal of the object. The run does not count as long as the object exists.
	Removal bool
	// Written is when the entry was written.
	Written time.Time
	// Run is the run, with its details unless they are too large.
	Run *api.Run
}

// header is the first line of a value.
type header struct {
	Version   int       `json:"version"`
	Resource  string    `json:"resource"`
	ObjectKey string    `json:"objectKey"`
	Removal   bool      `json:"removal,omitempty"`
	Written   time.Time `json:"written"`
}

// errLarge is why a value is made again without details.
var errLarge = errors.New("the run is too large")

// encode returns the value of an entry. Details that are too large for etcd are left out.
func encode(ctx context.Context, key string, entry Entry, transformer value.Transformer) ([]byte, error) {
	data, err := encodeRun(ctx, key, entry, transformer)
	if errors.Is(err, errLarge) && entry.Run.Details != nil {
		small := *entry.Run
		small.Details, entry.Run = nil, &small
		data, err = encodeRun(ctx, key, entry, transformer)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the run of %s %s: %w", entry.Resource, archive.KeyOf(entry.Run), err)
	}
	return data, nil
}

func encodeRun(ctx context.Context, key string, entry Entry, transformer value.Transformer) ([]byte, error) {
	run := &v1alpha1.Run{}
	if err := v1alpha1.Convert_archive_Run_To_v1alpha1_Run(entry.Run, run, nil); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(run)
	if err != nil {
		return nil, err
	}
	if len(plain) > maxRunBytes {
		return nil, errLarge
	}
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	if _, err := zip.Write(plain); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	payload := compressed.Bytes()
	if transformer != nil {
		if payload, err = transformer.TransformToStorage(ctx, payload, value.DefaultContext(key)); err != nil {
			return nil, fmt.Errorf("encrypting it: %w", err)
		}
	}
	first, err := json.Marshal(header{
		Version: version, Resource: entry.Resource.String(), ObjectKey: entry.ObjectKey, Removal: entry.Removal, Written: entry.Written.UTC(),
	})
	if err != nil {
		return nil, err
	}
	if len(first) > maxHeaderBytes || len(first)+1+len(payload) > maxValueBytes {
		return nil, errLarge
	}
	return append(append(first, '\n'), payload...), nil
}

// decodeHeader reads the first line of a value, and returns the rest.
func decodeHeader(data []byte) (h header, payload []byte, err error) {
	end := bytes.IndexByte(data[:min(len(data), maxHeaderBytes+1)], '\n')
	if end < 0 {
		return h, nil, errors.New("the value must begin with a line of JSON")
	}
	if err := json.Unmarshal(data[:end], &h); err != nil {
		return h, nil, fmt.Errorf("the first line must be JSON: %w", err)
	}
	if h.Version != version {
		return h, nil, fmt.Errorf("the value must have version %d, not %d: another version of the server has written it", version, h.Version)
	}
	return h, data[end+1:], nil
}

// decode reads a value.
func decode(ctx context.Context, key string, data []byte, transformerOf func(schema.GroupResource) value.Transformer) (*Entry, error) {
	h, payload, err := decodeHeader(data)
	if err != nil {
		return nil, err
	}
	entry := &Entry{
		Resource: schema.ParseGroupResource(h.Resource), ObjectKey: h.ObjectKey, Removal: h.Removal, Written: h.Written, Run: &api.Run{},
	}
	if transformer := transformerOf(entry.Resource); transformer != nil {
		if payload, _, err = transformer.TransformFromStorage(ctx, payload, value.DefaultContext(key)); err != nil {
			return nil, fmt.Errorf("decrypting it: %w", err)
		}
	}
	plain, err := decompress(payload)
	if err != nil {
		return nil, err
	}
	run := &v1alpha1.Run{}
	if err := json.Unmarshal(plain, run); err != nil {
		return nil, fmt.Errorf("the run must be JSON: %w", err)
	}
	if err := v1alpha1.Convert_v1alpha1_Run_To_archive_Run(run, entry.Run, nil); err != nil {
		return nil, err
	}
	if entry.Run.Object.UID == "" || entry.Run.Object.Execution < 1 || entry.Run.State == "" {
		return nil, errors.New("the run must have the UID of an object, the number of an execution and a state")
	}
	return entry, nil
}

func decompress(data []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decompressing it: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(zip, maxRunBytes+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing it: %w", err)
	}
	if len(plain) > maxRunBytes {
		return nil, fmt.Errorf("the run must have at most %d bytes", maxRunBytes)
	}
	return plain, nil
}
