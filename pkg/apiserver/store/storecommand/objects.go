// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecommand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/apigroups"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/etcd/backup"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/unreadable"
)

const (
	// maxProblems is how many objects that cannot be read are named.
	maxProblems = 20
	// encrypted is how the stored form of an encrypted object begins, and protobuf that of one in protobuf.
	encrypted = "k8s:enc:"
	protobuf  = "k8s\x00"
)

// reader reads stored objects as the server does.
type reader struct {
	prefix       string
	decoder      runtime.Decoder
	versions     schema.GroupVersions
	resources    []schema.GroupResource
	transformers encryptionconfig.StaticTransformers
}

// newReader reads encrypted objects if there is an encryption configuration.
func newReader(ctx context.Context, prefix, encryption string) (*reader, error) {
	_, codecs := apiserver.NewScheme()
	all := apigroups.All().InEtcd()
	r := &reader{
		prefix:    prefix,
		decoder:   codecs.CodecForVersions(nil, codecs.UniversalDeserializer(), nil, runtime.InternalGroupVersioner),
		versions:  all.StorageVersions(),
		resources: all.Stored(),
	}
	if encryption == "" {
		return r, nil
	}
	config, err := encryptionconfig.LoadEncryptionConfig(ctx, encryption, false, "")
	if err != nil {
		return nil, fmt.Errorf("--encryption-provider-config: %w: give the file of the server", err)
	}
	r.transformers = config.Transformers
	return r, nil
}

// resource returns which resource a key belongs to, and the name of the object.
func (r *reader) resource(key string) (schema.GroupResource, string, bool) {
	rest := strings.TrimPrefix(key, r.prefix+"/")
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) != 3 {
		return schema.GroupResource{}, rest, false
	}
	resource := schema.GroupResource{Group: parts[0], Resource: parts[1]}
	return resource, parts[2], slices.Contains(r.resources, resource)
}

// read decodes an object. It returns whether it is stored in the form that this version writes.
func (r *reader) read(ctx context.Context, resource schema.GroupResource, entry backup.Entry) (current bool, err error) {
	data, current, err := r.decrypt(ctx, resource, entry)
	if err != nil {
		return false, err
	}
	if _, _, err := r.decoder.Decode(data, nil, nil); err != nil {
		return false, err
	}
	return current && r.isCurrent(data), nil
}

// decrypt returns the bytes of an object, and whether the key of its encryption is the present one.
func (r *reader) decrypt(ctx context.Context, resource schema.GroupResource, entry backup.Entry) (data []byte, current bool, err error) {
	if r.transformers == nil {
		if bytes.HasPrefix(entry.Value, []byte(encrypted)) {
			return nil, false, errEncrypted
		}
		return entry.Value, true, nil
	}
	data, stale, err := r.transformers.TransformerForResource(resource).TransformFromStorage(ctx, entry.Value, value.DefaultContext(entry.Key))
	if err != nil {
		return nil, false, fmt.Errorf("decrypting it: %w", err)
	}
	return data, !stale, nil
}

// lacksUID returns whether the UID of the object of a name cannot be read. Metadata with another name belongs to another object.
func (r *reader) lacksUID(ctx context.Context, resource schema.GroupResource, name string, entry backup.Entry) bool {
	data, _, err := r.decrypt(ctx, resource, entry)
	if err != nil {
		return true
	}
	known := unreadable.MetadataOf(data)
	return known == nil || known.Namespace+"/"+known.Name != name
}

var errEncrypted = errors.New("it is encrypted")

// isCurrent returns whether an object is in protobuf and in the version that is stored now.
func (r *reader) isCurrent(data []byte) bool {
	var unknown runtime.Unknown
	if !bytes.HasPrefix(data, []byte(protobuf)) || unknown.Unmarshal(data[len(protobuf):]) != nil {
		return false
	}
	version, err := schema.ParseGroupVersion(unknown.APIVersion)
	return err == nil && slices.Contains(r.versions, version)
}
