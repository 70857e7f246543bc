// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
)

// shape is a JobSet with a list of n items at some place, and maybe another list of n items. Of an item, %d is the index.
type shape struct {
	name, before, item, after string
	another, end              string
}

const (
	head = `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train"},"spec":{`
	good = `{"name":"w","template":{"spec":{"template":{"spec":{"containers":[{"name":"c"}]}}}}}`
	pod  = head + `"replicatedJobs":[{"name":"w","template":{"spec":{"template":{"spec":{`
)

// shapes are the lists that have cost the most, and one for each list of the API.
var shapes = []shape{
	{"replicatedJobs", head + `"replicatedJobs":[`, `{}`, `]}}`, "", ""},
	{"valid replicatedJobs", head + `"replicatedJobs":[`, `{"name":"w%d","template":{"spec":{"template":{"spec":{"containers":[{"name":"c"}]}}}}}`, `]}}`, "", ""},
	{"replicatedJobs of one name", head + `"replicatedJobs":[`, good, `]}}`, "", ""},
	{"dependencies", head + `"replicatedJobs":[` + good + `,{"name":"x","dependsOn":[`, `{"name":"w"}`, `]}]}}`, "", ""},
	{"containers", pod + `"containers":[`, `{}`, `]}}}}}]}}`, "", ""},
	{"named containers", pod + `"containers":[`, `{"name":"c%d"}`, `]}}}}}]}}`, "", ""},
	{"variables", pod + `"containers":[{"name":"c","env":[`, `{}`, `]}]}}}}}]}}`, "", ""},
	{"volumes", pod + `"containers":[],"volumes":[`, `{"name":"x"}`, `]}}}}}]}}`, "", ""},
	{"mounts", pod + `"containers":[{"name":"c","volumeMounts":[`, `{"name":"x","mountPath":"/%d"}`, `]}]}}}}}]}}`, "", ""},
	{"tolerations", pod + `"containers":[],"tolerations":[`, `{}`, `]}}}}}]}}`, "", ""},
	{"node terms", pod + `"containers":[],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[`, `{"matchExpressions":[{}]}`, `]}}}}}}}}]}}`, "", ""},
	{"rules", head + `"replicatedJobs":[` + good + `],"failurePolicy":{"rules":[`, `{"action":"FailJobSet","targetReplicatedJobs":["w"]}`, `]}}}`, "", ""},
	{"rules of one name", head + `"replicatedJobs":[` + good + `],"failurePolicy":{"rules":[`, `{"name":"r","action":"x"}`, `]}}}`, "", ""},
	{"targets", head + `"replicatedJobs":[` + good + `],"failurePolicy":{"rules":[{"targetReplicatedJobs":[`, `""`, `]}]}}}`, "", ""},
	{"patterns", head + `"replicatedJobs":[` + good + `],"failurePolicy":{"rules":[{"onJobFailureMessagePatterns":[`, `"x{1000}"`, `]}]}}}`, "", ""},
	{"claims of one name", pod + `"containers":[],"volumes":[{"name":"x"}]}}}}}],"volumeClaimPolicies":[{"templates":[`, `{"metadata":{"name":"x"}}`, `]}]}}`, "", ""},
	{"claim policies", head + `"volumeClaimPolicies":[`, `{"templates":[{"metadata":{"name":"x"}}]}`, `]}}`, "", ""},
	{"labels", `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train","labels":{`, `"-%d":"-"`, `}},"spec":{}}`, "", ""},
	{"finalizers", `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train","finalizers":[`, `"x"`, `]},"spec":{}}`, "", ""},
	{"owners", `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train","ownerReferences":[`, `{"name":"%d"}`, `]},"spec":{}}`, "", ""},
	{"conditions", `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train"},"status":{"conditions":[`, `{}`, `]}}`, "", ""},
	{"unknown fields", head, `"x%d":{}`, `}}`, "", ""},
	{"depth", head + `"x":`, `[`, ``, "", ""},
	{
		"rules and replicatedJobs", head + `"replicatedJobs":[`, `{"name":"w%d","template":{"spec":{"template":{"spec":{"containers":[{"name":"c"}]}}}}}`,
		`],"failurePolicy":{"rules":[`, `{"action":"FailJobSet","targetReplicatedJobs":["w%d"]}`, `]}}}`,
	},
	{
		"volumes and claims of one name", pod + `"containers":[],"volumes":[`, `{"name":"x"}`,
		`]}}}}}],"volumeClaimPolicies":[{"templates":[`, `{"metadata":{"name":"x"}}`, `]}]}}`,
	},
}

// json writes the shape with n items.
func (s shape) json(n int) []byte {
	var b bytes.Buffer
	b.WriteString(s.before)
	repeat(&b, s.item, n, s.name != "depth")
	b.WriteString(s.after)
	if s.another != "" {
		repeat(&b, s.another, n, true)
		b.WriteString(s.end)
	}
	return b.Bytes()
}

func repeat(b *bytes.Buffer, item string, n int, commas bool) {
	numbered := strings.Contains(item, "%d")
	for i := range n {
		if i > 0 && commas {
			b.WriteByte(',')
		}
		if numbered {
			fmt.Fprintf(b, item, i)
		} else {
			b.WriteString(item)
		}
	}
}

// transcoder writes documents of JSON in other formats.
type transcoder struct {
	cbor  runtime.Encoder
	proto runtime.Encoder
}

func newTranscoder(s *server) transcoder {
	return transcoder{
		cbor:  s.serializer(mediaCBOR),
		proto: s.codecs.EncoderForVersion(s.serializer(mediaProtobuf), v1alpha2.SchemeGroupVersion),
	}
}

// in returns the document in a format; nothing if the format cannot say it.
func (tr transcoder) in(media string, document []byte) []byte {
	var b bytes.Buffer
	switch media {
	case mediaYAML:
		if out, err := yaml.JSONToYAML(document); err == nil {
			return out
		}
		return nil
	case mediaCBOR:
		u := &unstructured.Unstructured{}
		if json.Unmarshal(document, &u.Object) != nil || tr.cbor.Encode(u, &b) != nil {
			return nil
		}
		return b.Bytes()
	case mediaProtobuf:
		js := &v1alpha2.JobSet{}
		if json.Unmarshal(document, js) != nil {
			return nil
		}
		js.SetGroupVersionKind(kind)
		if tr.proto.Encode(js, &b) != nil {
			return nil
		}
		return b.Bytes()
	}
	return document
}

// mutate changes a body at random places: it repeats, removes and overwrites parts.
func mutate(r *rand.Rand, body []byte) []byte {
	for range r.Intn(4) {
		if len(body) < 2 {
			return body
		}
		from := r.Intn(len(body))
		to := min(from+1+r.Intn(64), len(body))
		switch r.Intn(5) {
		case 0:
			body = bytes.Join([][]byte{body[:to], bytes.Repeat(body[from:to], 1+r.Intn(30)), body[to:]}, nil)
		case 1:
			body = bytes.Join([][]byte{body[:from], body[to:]}, nil)
		case 2:
			body = bytes.Clone(body)
			body[from] = byte(r.Intn(256))
		case 3:
			body = bytes.Join([][]byte{body[:from], []byte(tokens[r.Intn(len(tokens))]), body[to:]}, nil)
		case 4:
			body = bytes.Join([][]byte{body[:from], []byte(tokens[r.Intn(len(tokens))]), body[from:]}, nil)
		}
	}
	return body
}

var tokens = []string{
	"{}", "[]", "[{}]", ",{}", `""`, "null", "-1", "2147483647", "1e400", "true", "- ", "&a ", "*a", "|\n", "\n", ": ", "{", "[", "]", "}",
	`"\u0000"`, "\x00", "\xff", "\xa0", "\x80", "\xbf\xff", "\x9f", "\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", "\x0a\x00", "k8s\x00",
	`"replicas":2147483647`, `"suspend":true`, `"dependsOn":[{"name":"w","status":"Ready"}]`, `"groupName":""`,
}
