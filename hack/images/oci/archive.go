// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

const (
	// nameAnnotation is the whole name under which containerd imports an image.
	nameAnnotation = "io.containerd.image.name"
	// tagAnnotation is the tag of an image in an archive of OCI.
	tagAnnotation = "org.opencontainers.image.ref.name"

	// maxArchive bounds what is unpacked from an archive.
	maxArchive = 4 << 30
)

// archived lists the files that an archive may have.
var archived = regexp.MustCompile(`^(oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})$`)

// Write writes an archive of OCI with an index of images under a name, such as docker.io/library/jobset-apiserver, and a tag, and with
// the documents that refer to its images. Equal content gives an equal archive.
func Write(archive, name, tag string, index v1.ImageIndex, documents []v1.Image) error {
	annotations := map[string]string{nameAnnotation: name + ":" + tag, tagAnnotation: tag}
	return writeLayout(archive, func(content layout.Path) error {
		if err := content.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
			return fmt.Errorf("writing the images of %s: %w", archive, err)
		}
		for _, document := range documents {
			if err := appendDocument(content, document); err != nil {
				return fmt.Errorf("writing the bills of materials of %s: %w", archive, err)
			}
		}
		return nil
	})
}

// appendDocument lists a document beside the images. It has no name, so programs that import images do not take it for one.
func appendDocument(content layout.Path, document v1.Image) error {
	if err := content.WriteImage(document); err != nil {
		return err
	}
	descriptor, err := partial.Descriptor(document)
	if err != nil {
		return err
	}
	return content.AppendDescriptor(*descriptor)
}

// pack writes the files of a directory, in the order of their names and without times, and renames the result when it is complete.
func pack(dir, archive string) error {
	unfinished := archive + ".unfinished"
	defer os.Remove(unfinished)
	f, err := os.Create(unfinished)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return packFile(w, path, filepath.ToSlash(name))
	})
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", archive, err)
	}
	return os.Rename(unfinished, archive)
}

func packFile(w *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(),
		ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// Archive is an archive that Write has written, unpacked into a directory.
type Archive struct {
	// Name is the whole name of the image, and Tag the last part of it.
	Name string
	Tag  string
	// Index has an image for each platform.
	Index v1.ImageIndex
	// Documents refer to the images.
	Documents []v1.Image
}

// Read unpacks an archive into a directory, which must be there as long as the result is used.
func Read(archive, dir string) (*Archive, error) {
	out, err := read(archive, dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	return out, nil
}

func read(archive, dir string) (*Archive, error) {
	if err := unpack(archive, dir); err != nil {
		return nil, err
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, err
	}
	out := &Archive{}
	for _, descriptor := range manifest.Manifests {
		switch {
		case descriptor.MediaType.IsIndex():
			out.Name, out.Tag = descriptor.Annotations[nameAnnotation], descriptor.Annotations[tagAnnotation]
			out.Index, err = all.ImageIndex(descriptor.Digest)
		default:
			var document v1.Image
			document, err = all.Image(descriptor.Digest)
			out.Documents = append(out.Documents, document)
		}
		if err != nil {
			return nil, err
		}
	}
	if out.Index == nil || out.Name == "" || out.Tag == "" {
		return nil, errors.New("must have an index of images with a name and a tag; run make images")
	}
	return out, nil
}

func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		return err
	}
	r := tar.NewReader(io.LimitReader(f, maxArchive))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !archived.MatchString(header.Name) {
			return fmt.Errorf("%q must be a file of an OCI layout", header.Name)
		}
		if err := unpackFile(r, filepath.Join(dir, filepath.FromSlash(header.Name))); err != nil {
			return err
		}
	}
}

func unpackFile(r io.Reader, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
