package main

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
)

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	return float64(u.Utime.Sec) + float64(u.Utime.Usec)/1e6
}
func must(err error) {
	if err != nil {
		panic(err)
	}
}
func main() {
	dir := os.Args[1]
	pub, err := os.ReadFile(dir + "/program.json")
	must(err)
	priv, err := os.ReadFile(dir + "/weights.safetensors")
	must(err)
	p, err := program.Parse(pub)
	must(err)
	w, err := program.ParseWeights(priv, p)
	must(err)
	t, c := time.Now(), cpu()
	lap := func(s string) {
		fmt.Printf("%-10s wall %.3f cpu %.3f\n", s, time.Since(t).Seconds(), cpu()-c)
		t, c = time.Now(), cpu()
	}
	sn, err := network.Build(p, nil)
	must(err)
	sp, err := plan.New(sn)
	must(err)
	lap("plan")
	n, err := network.Build(p, w)
	must(err)
	fmt.Printf("%+v batch %d groups %d cost %g rotations %d\n", sp.Set, sp.Batch, sp.Groups, sp.Cost, len(sp.Rotations))
	for i, l := range sp.Layouts {
		fmt.Println(i, n.Nodes[i].Name, n.Nodes[i].Kind, n.Nodes[i].Degree, l.Name, "cts", l.Ciphertexts, "period", l.Period, "level", sp.Argument[i], sp.Made[i])
		for _, a := range sp.Transforms[i] {
			for _, x := range a {
				fmt.Printf("    %+v step %d folds %v\n", x.Count(), x.Step, x.Folds)
			}
		}
	}
	if len(os.Args) > 2 {
		return
	}
	m, err := evaluate.NewModel(n, sp)
	must(err)
	lap("encode")
	kg := rlwe.NewKeyGenerator(m.Params)
	sk := kg.GenSecretKeyNew()
	rlk := kg.GenRelinearizationKeyNew(sk)
	var gks []*rlwe.GaloisKey
	for k := range sp.Rotations {
		gks = append(gks, kg.GenGaloisKeyNew(m.Params.GaloisElement(k), sk))
	}
	lap("keys")
	in := map[string][][]float64{}
	data, err := os.ReadFile(dir + "/io.json")
	must(err)
	must(json.Unmarshal(data, &in))
	enc, ecd := rlwe.NewEncryptor(m.Params, sk), ckks.NewEncoder(m.Params)
	var cts []*rlwe.Ciphertext
	for _, s := range sp.Layouts[0].Fill(in["x"][:min(sp.Batch, len(in["x"]))], sp.Batch) {
		pt := ckks.NewPlaintext(m.Params, m.Params.MaxLevel())
		must(ecd.Encode(s, pt))
		ct, err := enc.EncryptNew(pt)
		must(err)
		cts = append(cts, ct)
	}
	lap("encrypt")
	ev := ckks.NewEvaluator(m.Params, rlwe.NewMemEvaluationKeySet(rlk, gks...))
	out, err := m.Run(ev, []evaluate.Values{cts}, func(s evaluate.Step) { lap(s.Name + " " + s.Kind) })
	must(err)
	lap("last")
	dec := rlwe.NewDecryptor(m.Params, sk)
	var slots [][]float64
	for _, ct := range out[0] {
		v := make([]float64, m.Params.MaxSlots())
		must(ecd.Decode(dec.DecryptNew(ct), v))
		slots = append(slots, v)
	}
	got := sp.Layouts[len(sp.Layouts)-1].Take(slots, sp.Batch, min(sp.Batch, len(in["x"])))
	worst := 0.0
	for s := range got {
		for e := range got[s] {
			worst = max(worst, got[s][e]-in["y"][s][e], in["y"][s][e]-got[s][e])
		}
	}
	lap("decrypt")
	fmt.Println("worst error", worst, "e.g.", got[0][:3], in["y"][0][:3])
}
