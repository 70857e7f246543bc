// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned/scheme"
)

const (
	// pageSize is how many sets one answer holds, as for kubectl. No more than one answer is in memory, and rows are small.
	pageSize = 500
	// wholeSets is the size of pages of whole sets, which can be large.
	wholeSets = 50

	asTable  = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json"
	asObject = "application/json"
)

// source reads rows from the server: from its table with the metadata of the sets alone, or, where that has no phase, from the sets.
type source struct {
	kind      *listed
	client    rest.Interface
	namespace string // all if empty
	labels    string
	// table is the table of the server; nil for sets.
	table table
	whole bool
}

func (s *source) request(options metav1.ListOptions) *rest.Request {
	options.LabelSelector = s.labels
	request := s.client.Get().Resource(s.kind.Names[1]).VersionedParams(&options, scheme.ParameterCodec)
	if s.namespace != "" {
		request = request.Namespace(s.namespace)
	}
	if s.whole {
		return request.SetHeader("Accept", asObject)
	}
	return request.SetHeader("Accept", asTable).Param("includeObject", string(metav1.IncludeMetadata))
}

// list calls add for each set, and returns the version from which a watch goes on.
func (s *source) list(ctx context.Context, add func(Row)) (version string, err error) {
	options := metav1.ListOptions{}
	for {
		if options.Limit = pageSize; s.whole {
			options.Limit = wholeSets
		}
		answer := s.request(options).Do(ctx)
		err := answer.Error() // has the message of the server, which the error of Raw has not
		if next := continued(err); next != "" {
			options.Continue = next
			continue
		}
		if err != nil {
			return "", err
		}
		content, err := answer.Raw()
		if err != nil {
			return "", err
		}
		rows, meta, err := s.page(content)
		if errors.Is(err, errNoPhase) {
			s.whole = true
			continue
		}
		if err != nil {
			return "", err
		}
		for i := range rows {
			add(rows[i])
		}
		if version == "" {
			version = meta.ResourceVersion
		}
		if options.Continue = meta.Continue; options.Continue == "" {
			return version, nil
		}
	}
}

// continued returns the token with which a list goes on whose earlier token has expired, or "".
func continued(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// errNoPhase is the answer of a server whose table lacks columns.
var errNoPhase = errors.New("the table of the server has no column of phases")

// page decodes an answer: a table or a list of sets.
func (s *source) page(content []byte) ([]Row, metav1.ListMeta, error) {
	if s.whole {
		return s.kind.rows(content)
	}
	return s.decodeTable(content)
}

func (s *source) decodeTable(content []byte) ([]Row, metav1.ListMeta, error) {
	answer := metav1.Table{}
	if err := json.Unmarshal(content, &answer); err != nil {
		return nil, metav1.ListMeta{}, fmt.Errorf("reading the table of the server: %w", err)
	}
	if len(answer.ColumnDefinitions) > 0 {
		s.table = newTable(answer.ColumnDefinitions)
	}
	if answer.Kind != "Table" || !s.table.complete() {
		return nil, metav1.ListMeta{}, errNoPhase
	}
	rows := make([]Row, 0, len(answer.Rows))
	for i := range answer.Rows {
		row, err := s.table.row(&answer.Rows[i])
		if err != nil {
			return nil, metav1.ListMeta{}, err
		}
		rows = append(rows, row)
	}
	return rows, answer.ListMeta, nil
}

// event is a change of a set. Its row has no name for bookmarks.
type event struct {
	kind watch.EventType
	row  Row
}

// watch calls see for each change after the version, until the server ends the stream. It returns the version of the last change.
func (s *source) watch(ctx context.Context, version string, see func(event) error) (string, error) {
	stream, err := s.request(metav1.ListOptions{Watch: true, ResourceVersion: version, AllowWatchBookmarks: true}).Stream(ctx)
	if err != nil {
		return version, err
	}
	defer func() { _ = stream.Close() }()
	decoder := json.NewDecoder(stream)
	for {
		received := metav1.WatchEvent{}
		if err := decoder.Decode(&received); errors.Is(err, io.EOF) {
			return version, nil
		} else if err != nil {
			return version, err
		}
		kind := watch.EventType(received.Type)
		if kind == watch.Error {
			return version, statusOf(received.Object.Raw)
		}
		rows, err := s.changed(received.Object.Raw)
		if err != nil {
			return version, err
		}
		for _, row := range rows {
			version = row.resourceVersion
			if kind == watch.Bookmark {
				continue
			}
			if err := see(event{kind, row}); err != nil {
				return version, err
			}
		}
	}
}

// changed decodes the object of an event.
func (s *source) changed(content []byte) ([]Row, error) {
	if s.whole {
		row, err := s.kind.row(content)
		return []Row{row}, err
	}
	rows, _, err := s.decodeTable(content)
	return rows, err
}

// statusOf is the error that a watch ends with.
func statusOf(content []byte) error {
	status := metav1.Status{}
	if err := json.Unmarshal(content, &status); err != nil {
		return fmt.Errorf("reading the error of a watch: %w", err)
	}
	return apierrors.FromObject(&status)
}
