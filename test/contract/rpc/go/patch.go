package main

import (
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

type patching struct {
	Document json.RawMessage `json:"document"`
	Patch    json.RawMessage `json:"patch"`
}

func runPatch() error {
	return eachLine(func(line patching) any {
		patch, err := jsonpatch.DecodePatch(line.Patch)
		if err != nil {
			return map[string]string{"error": err.Error()}
		}
		result, err := patch.Apply(line.Document)
		if err != nil {
			return map[string]string{"error": err.Error()}
		}
		return map[string]json.RawMessage{"document": result}
	})
}
