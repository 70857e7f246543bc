// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// directly are attacks that do not come through kube-apiserver, so that nothing before the server bounds them.
func directly() []attack {
	held := func(name string, send func(context.Context, *env) answer, beside func(context.Context, *env) error) attack {
		return attack{name: name, held: true, tells: true, send: send, beside: beside}
	}
	lists := func(ctx context.Context, e *env) error { return e.direct.reads(ctx) }
	fresh := func(ctx context.Context, e *env) error { return e.readsWithNewTokens(ctx) }
	restarted := func(ctx context.Context, e *env) error { return e.servesRestarted(ctx) }
	groups := func(ctx context.Context, e *env) error { return e.servesGroups(ctx) }
	tables := http.Header{"Accept": {"application/json;as=Table;g=meta.k8s.io;v=v1"}}
	webSocket := http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Origin": {"https://localhost"},
	}
	large := question(1_600_000)
	return []attack{
		held("1,000 watches of 1.3 MB that nobody reads", watches{n: 1000, perConnection: 50, sets: 5, changes: 15}.open, lists),
		held("300 watches of tables of 1.3 MB that nobody reads", watches{n: 300, query: "includeObject=Object", header: tables, sets: 5, changes: 15}.open, lists),
		held("300 watches over WebSocket that nobody reads", watches{n: 300, header: webSocket, sets: 5, changes: 15}.open, lists),
		held("7,000 watches", watches{n: 7000, perConnection: 100}.open, lists),
		held("6,000 watches of two accounts with a connection each, beside 100 sets of 1.3 MB",
			watches{n: 6000, perConnection: 1, both: true, query: "fieldSelector=metadata.name%3Dnone", sets: 100}.open, restarted),
		held("220 questions about pods of a byte a second", questions(220, func(ctx context.Context) io.Reader { return slow{ctx} }), groups),
		held("20 clients that ask about pods of 1.6 MB again and again", questions(20, func(context.Context) io.Reader { return bytes.NewReader(large) }), groups),
		held("good questions from 20 addresses for a minute, and then pods of 1.6 MB", goodQuestions(20), groups),
		held("20 clients that create pods of groups with 900 KB, through kube-apiserver", groupPods(20), groups),
		held("tokens that nobody has, from 130 connections", badTokens(130), lists),
		held("tokens that nobody has, from 130 connections, beside new tokens", badTokens(130), fresh),
		action("control characters in a reason", "suspend", func() []byte { return []byte(`{"spec":{"reason":"\u001b[2J\u0000\u202e"}}`) }),
	}
}
